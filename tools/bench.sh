# shellcheck shell=sh
# ./fusebook bench
: "${root:?}" "${build:?}" # set by ./fusebook

if [ -e "$root/tests/bench/bench.cpp" ]; then
  need_to_build
  get_missing
  build bench
  end_turn
  "$build/tests/bench" "$@"
else
  no_more bench "$@"
  say "There is no benchmark program yet; running the recipes for their timings."
  set --
  . "$root/tools/run.sh"
fi
