#!/bin/sh
# Starts a test that needs something which may not be installed:
#   launch.sh python ARGUMENTS...            Python 3.11 or newer
#   launch.sh environment NAME ARGUMENTS...  packages in build/python/NAME
#   launch.sh nvrtc MAJOR PROGRAM ARGUMENTS...  a program that finds the NVRTC
#                                            of that CUDA in build/python/cuda,
#                                            and the disassembler
#   launch.sh nvcc ARGUMENTS...              the CUDA Toolkit's compiler
#   launch.sh torch ARGUMENTS...             the Python FUSEBOOK_PYTHON_TORCH, which
#                                            has PyTorch
#   launch.sh libtorch ARGUMENTS...          Python, where LibTorch is installed
#   launch.sh ranks COUNT PROGRAM ARGUMENTS...  a program on that many ranks of MPI,
#                                            each with one thread; of MPICH, if
#                                            FUSEBOOK_MPI is mpich
#   launch.sh without WHAT PACKAGES          what the build did not find and need not
#   launch.sh absent PACKAGE                 what the build did not find
# Without it the test is skipped (exit code 77), or fails when nothing may be
# missing (FUSEBOOK_COMPLETE=1, as under ./fusebook test). Only the toolkit, PyTorch,
# LibTorch and MPI may always be missing.
set -u
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)

absent() {
  echo "not installed: $1. Run ./fusebook test, which installs it."
  [ -z "${FUSEBOOK_COMPLETE:-}" ] || exit 1
  exit 77
}

kind=$1
shift
case $kind in
  python)
    python=${FUSEBOOK_PYTHON:-python3}
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
      2>/dev/null || absent "Python 3.11 or newer"
    exec "$python" "$@"
    ;;
  environment)
    folder=$root/build/python/$1
    name=$1
    shift
    [ -e "$folder/ready" ] || absent "the Python packages for $name"
    exec "$folder/bin/python" -B "$@"
    ;;
  nvrtc)
    for FUSEBOOK_NVRTC in \
      "$root"/build/python/cuda/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so."$1"; do
      [ -e "$FUSEBOOK_NVRTC" ] && [ -e "$root/build/python/cuda/ready" ] ||
        absent "the Python packages for cuda"
    done
    FUSEBOOK_NVDISASM=$(echo "$root"/build/python/cuda/lib/python3*/site-packages/nvidia/*/bin/nvdisasm)
    export FUSEBOOK_NVRTC FUSEBOOK_NVDISASM
    shift
    exec "$@"
    ;;
  nvcc)
    nvcc=${FUSEBOOK_CUDA_HOME:-${CUDA_HOME:-/usr/local/cuda}}/bin/nvcc
    [ -x "$nvcc" ] || nvcc=$(command -v nvcc) || {
      echo "skipped: nvcc is not installed. It is part of the CUDA Toolkit," \
        "which nothing else here needs."
      exit 77
    }
    exec "$nvcc" "$@"
    ;;
  torch)
    python=${FUSEBOOK_PYTHON_TORCH:-python3}
    "$python" -c 'import numpy, torch' 2>/dev/null || {
      echo "skipped: $python has no PyTorch. Set FUSEBOOK_PYTHON_TORCH to a Python" \
        "of the same version as the package's that has it."
      exit 77
    }
    exec "$python" -B "$@"
    ;;
  libtorch)
    header=include/torch/csrc/api/include/torch/optim.h
    for prefix in /usr /usr/local $(echo "${CMAKE_PREFIX_PATH:-}" | tr : ' '); do
      [ ! -e "$prefix/$header" ] || exec "${FUSEBOOK_PYTHON:-python3}" -B "$@"
    done
    echo "skipped: LibTorch is not installed; Debian calls it libtorch-dev."
    exit 77
    ;;
  ranks)
    . "$root/tools/lib/ranks.sh"
    count=$1 words=
    shift
    words_for_ranks "$count"
    # shellcheck disable=SC2086 # words without blanks
    exec $words "$@"
    ;;
  without)
    echo "skipped: $1 is not installed; Debian calls it $2."
    exit 77
    ;;
  *) absent "$1" ;;
esac
