# shellcheck shell=sh
# ./fusebook lint [--fix] [FILE...]
: "${root:?}" "${build:?}" # set by ./fusebook

lint() { # COMMAND ARGUMENT...
  "$root/build/python/lint/bin/python" -B "$root/tests/lint.py" "$@" 9>&- ||
    worst=1
}

fix=no
case ${1:-} in
  --fix)
    fix=yes
    shift
    ;;
  -*) unknown "lint option" "$1" --fix ;;
esac
need_to_build doctest python
need_environment lint
get_missing
find_python
configure_anew
end_turn
worst=0
if [ "$fix" = yes ]; then lint format --fix "$@"; else lint format "$@"; fi
lint shell "$@"
lint workflows "$@"
lint headers "$build" "$@"
lint tidy "$build" "$@"
[ "$worst" -eq 0 ] || fail 1 "there are findings (see above)"
