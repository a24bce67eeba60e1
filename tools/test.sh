# shellcheck shell=sh
# ./fusebook test [NAME...] [ctest options]
: "${root:?}" "${build:?}" "${preset:?}" # set by ./fusebook
: "${python?}" "${chromium?}"

# Installs and builds all that is tested.
prepare_everything() {
  need venv chromium chinese doxygen pkgconfig pythondev
  wish libtorch mpi
  need_environment lint docs pages interop module cuda
  get_missing
  find_python
  build all
}

# Finds out what the chosen tests need.
find_needs() { # CTEST-OPTION...
  configure_anew
  needs=$(cd -- "$root" && "$python" -B "$root/tools/lib/needs_of_tests.py" \
    "$build" "$names" ctest --preset "$preset" "$@" 9>&-) || exit
  targets=
  for word in $needs; do
    case $word in
      environment=*) need_environment "${word#*=}" ;;
      program=libtorch | program=mpi) wish "${word#*=}" ;;
      program=*) need "${word#*=}" ;;
      target=*) targets="$targets ${word#*=}" ;;
    esac
  done
}

# Installs and builds what the chosen tests need, and nothing else.
prepare_chosen() { # CTEST-OPTION...
  get_missing
  find_python
  find_needs "$@"
  if [ -n "$packages$environments" ]; then
    get_missing
    find_needs "$@" # what was installed may bring tests, and programs of theirs
  fi
  # shellcheck disable=SC2086 # names of targets are single words
  [ -z "$targets" ] || build $targets
}

# Whether ctest is only asked for information.
only_tells() { # CTEST-OPTION...
  for word in "$@"; do
    case $word in
      -N | --show-only* | --print-labels | --help* | --version) return 0 ;;
    esac
  done
  return 1
}

# Leading words name tests; from the first option on all is ctest's.
names='' pattern='' everything=no
while [ $# -gt 0 ]; do
  case $1 in -*) break ;; esac
  name=${1##*/}
  name=${name%.cpp}
  case $name in
    '' | *[!A-Za-z0-9_.-]*) fail 2 "unknown test '$1'" ;;
  esac
  names="$names $name"
  pattern="$pattern${pattern:+|}$(say "$name" | sed 's/\./[.]/g')"
  shift
done
[ -z "$pattern" ] || set -- -R "^($pattern)\$" "$@"
if [ $# -eq 0 ] && [ "$preset" = release ]; then everything=yes; fi

need_to_build doctest python
if [ "$everything" = yes ]; then
  prepare_everything
elif only_tells "$@"; then
  get_missing
  configure_anew
else
  prepare_chosen "$@"
fi
find_chromium || chromium=
step "Testing ($preset)"
# Here nothing may be left out because something is not installed.
(cd -- "$root" && FUSEBOOK_COMPLETE=1 FUSEBOOK_PYTHON="$python" \
  FUSEBOOK_CHROMIUM="$chromium" ctest --preset "$preset" "$@" 9>&-) ||
  fail 1 "some tests failed (listed above)"
if [ "$everything" = yes ]; then
  say "All tests passed."
else
  say "The chosen tests passed; ./fusebook test runs all but the nightly ones."
fi
