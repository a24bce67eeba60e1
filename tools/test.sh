# shellcheck shell=sh
# ./fusebook test [ctest options]
: "${root:?}" "${preset:?}" "${python?}" "${chromium?}" # set by ./fusebook

need compiler cmake ninja doctest
if [ "$preset" = release ]; then
  need python venv chromium
  need_environment lint docs pages interop cuda
  get_missing
  find_python
  find_chromium ||
    fail 1 "chromium was installed but is not found on PATH"
  build all
else
  need python
  need_environment interop
  get_missing
  find_python
  build unit_tests
fi
step "Testing ($preset)"
# Here nothing may be left out because something is not installed.
(cd -- "$root" && FUSEBOOK_COMPLETE=1 FUSEBOOK_PYTHON="$python" \
  FUSEBOOK_CHROMIUM="$chromium" ctest --preset "$preset" "$@" 9>&-) ||
  fail 1 "not everything holds: the tests that failed are listed above"
if [ $# -eq 0 ] && [ "$preset" = release ]; then
  say "Everything holds."
else
  say "What was chosen holds; ./fusebook test runs the whole."
fi
