#!/bin/sh
# Starts a test that needs something which may not be installed:
#   launch.sh python ARGUMENTS...            Python 3.11 or newer
#   launch.sh environment NAME ARGUMENTS...  packages in build/python/NAME
#   launch.sh absent PACKAGE                 what the build did not find
# Without it the test is skipped (exit code 77), or fails when nothing may be
# missing (FUSEBOOK_COMPLETE=1, as under ./fusebook test).
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
  *) absent "$1" ;;
esac
