#!/bin/sh
# Leaves the complete sources of what a program compiles in a fresh folder:
#   keep_sources.sh FOLDER recipes PROGRAM...
#   keep_sources.sh FOLDER PROGRAM ARGUMENT...
# or an empty folder, for a program that is run later:
#   keep_sources.sh FOLDER
# Recipes run on the CPU, on a small model where they have one: a kernel's text
# depends on neither.
set -eu
FUSEBOOK_KEEP_SOURCE=$1
export FUSEBOOK_KEEP_SOURCE
shift
rm -rf -- "$FUSEBOOK_KEEP_SOURCE"
mkdir -p -- "$FUSEBOOK_KEEP_SOURCE"
[ $# -gt 0 ] || exit 0

run() {
  "$@" >"$FUSEBOOK_KEEP_SOURCE/output" 2>&1 || {
    status=$?
    cat -- "$FUSEBOOK_KEEP_SOURCE/output" >&2
    echo "keep_sources.sh: $* ended with exit code $status" >&2
    exit 1
  }
}

run_recipe() {
  set -- "$1" --device cpu
  case $("$1" --help) in
    *--layers*--width*) set -- "$@" --layers 2 --width 8 ;;
  esac
  run "$@"
}

if [ "$1" = recipes ]; then
  shift
  for program in "$@"; do run_recipe "$program"; done
else
  run "$@"
fi

set -- "$FUSEBOOK_KEEP_SOURCE"/*.cu
[ -e "$1" ] || {
  echo "keep_sources.sh: no source was kept" >&2
  exit 1
}
echo "$# sources are kept"
