# shellcheck shell=sh
# ./fusebook bench [--ranks N]
: "${root:?}" "${build:?}" # set by ./fusebook
unset FUSEBOOK_QUICK          # times are what it is called for

# On several processes, which MPI starts.
bench_ranks() { # COUNT OPTION...
  count=$1
  shift
  case $count in
    '' | *[!0-9]* | 0 | 0* | 1) fail 2 "--ranks needs a number of at least 2" ;;
  esac
  need_to_build mpi
  get_missing
  build bench_ranks
  end_turn
  sh "$root/tests/launch.sh" ranks "$count" "$build/tests/bench_ranks" "$@"
}

ranks='' left=$#
while [ "$left" -gt 0 ]; do
  word=$1
  shift
  left=$((left - 1))
  case $word in
    --ranks=*) ranks=${word#--ranks=} ;;
    --ranks)
      [ "$left" -gt 0 ] || fail 2 "--ranks needs a number of at least 2"
      ranks=$1
      shift
      left=$((left - 1))
      ;;
    *) set -- "$@" "$word" ;;
  esac
done

if [ -n "$ranks" ]; then
  bench_ranks "$ranks" "$@"
elif [ -e "$root/tests/bench/bench.cpp" ]; then
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
