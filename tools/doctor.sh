# shellcheck shell=sh
# ./fusebook doctor
: "${build:?}" # set by ./fusebook

doctor_line() { # THING NAME PURPOSE
  if ! is_found "$1"; then
    packages="$packages $(package_of "$1")"
    printf '  %-8s %-9s %-14s %s\n' missing "$2" - "$3"
    return
  fi
  version=$(version_of "$1")
  if at_least "$(oldest_of "$1")" "${version:-0}"; then
    printf '  %-8s %-9s %-14s %s\n' ok "$2" "${version:-?}" "$3"
  else
    too_old="$too_old $2"
    printf '  %-8s %-9s %-14s %s\n' 'too old' "$2" "${version:-?}" \
      "needs $(oldest_of "$1") or newer"
  fi
}

# What something is left out without, and nothing else needs.
optional_line() { # THING NAME PURPOSE
  if is_found "$1"; then
    printf '  %-8s %-9s %-14s %s\n' ok "$2" "$(version_of "$1")" "$3"
  else
    printf '  %-8s %-9s %-14s %s\n' none "$2" - \
      "$3: apt-get install $(package_of "$1")"
  fi
}

device_line() { # STATE NAME WORD...
  state=$1 named=$2
  shift 2
  printf '  %-8s %-9s %s\n' "$state" "$named" "$*"
}

# What can be told without a program of ours: is a library there?
driver_from_shell() {
  known=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null)
  case $known in
    *libcuda.so.1*) device_line found cuda "libcuda.so.1, the NVIDIA driver" ;;
    *) device_line none cuda "no NVIDIA driver (libcuda.so.1) was found" ;;
  esac
  case $known$(nvrtc_folders) in
    *libnvrtc.so.1[23]* | */nvidia/*)
      device_line found NVRTC "CUDA's run-time compiler" ;;
    *) device_line none NVRTC "CUDA's run-time compiler was not found:" \
      "install the CUDA Toolkit, or use --with-cuda" ;;
  esac
  device_line '' '' "(./fusebook test builds a program that tells more)"
}

toolkit_line() { # PROGRAM PURPOSE
  tool=${FUSEBOOK_CUDA_HOME:-${CUDA_HOME:-/usr/local/cuda}}/bin/$1
  [ -x "$tool" ] || tool=$(command -v -- "$1") || tool=
  if [ -n "$tool" ]; then
    version=$("$tool" --version 2>/dev/null |
      sed -n 's/.*\(release\|Version\) \([0-9.]*[0-9]\).*/\2/p')
    device_line ok "$1" "${version:-?} ($tool), $2"
  else
    device_line none "$1" "$2; nothing else needs it"
  fi
}

# No GPU need be there, so nothing here is a fault.
doctor_devices() {
  say "Devices:"
  device_line ok cpu "$(nproc 2>/dev/null || echo '?') threads available"
  "$build/tests/gpu_report" 2>/dev/null || driver_from_shell
  toolkit_line nvcc "compiles the hand-written kernel in a test"
  toolkit_line compute-sanitizer "watches kernels on a GPU"
  device_line ok cuda-sim "GPU code on the CPU: slow, for learning and tests"
}

no_more doctor "$@"
too_old=
say "Tools:"
doctor_line compiler g++ "builds; compiles kernels at run time"
doctor_line cmake cmake "builds"
doctor_line ninja ninja "builds"
doctor_line eigen Eigen "builds: matrix products"
doctor_line fmt fmt "builds: messages"
doctor_line cli CLI11 "builds: command lines"
doctor_line json JSON "builds: results, checkpoints"
doctor_line doctest doctest "test"
doctor_line python python3 "test, docs, verify, capture"
doctor_line venv venv "test, docs"
doctor_line chromium chromium "test (pages)"
doctor_line chinese "Chinese fonts" "test (pages)"
doctor_line doxygen doxygen "test, docs (API reference)"
doctor_line pkgconfig pkg-config "test (programs outside)"
doctor_line pythondev python3-dev "test (the Python package)"
optional_line mpi MPI "run --ranks: steps shared by processes"
say "Python packages (installed by the command that needs them):"
for name in lint docs pages interop module cuda cublas; do
  if is_made "$name"; then state=ready; else state='not yet'; fi
  printf '  %-8s %-9s %s\n' "$state" "$name" "build/python/$name"
done
doctor_devices
if [ -n "$too_old" ]; then
  complain "too old:$too_old; set CXX or PATH to newer ones"
fi
if [ -n "$packages" ]; then
  say_how
  return 1
fi
[ -z "$too_old" ] || return 1
say "Nothing is missing."
