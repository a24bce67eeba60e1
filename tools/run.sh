# shellcheck shell=sh
# ./fusebook run [RECIPE...] [--ranks N] [options]
: "${root:?}" "${build:?}" "${chosen?}" # set by ./fusebook

run_one() { # RECIPE OPTION...
  name=$1 words=
  shift
  step "$name"
  if [ -z "$ranks" ]; then
    "$build/recipes/$name" "$@"
  else
    words_for_ranks "$ranks"
    say "started by: $words"
    # shellcheck disable=SC2086 # words without blanks
    $words "$build/recipes/$name" "$@"
  fi
}

check_ranks() { # NUMBER
  case $1 in
    '' | 0* | *[!0-9]* | ?????*) fail 2 "--ranks needs a number from 1 to 9999," \
      "not '$1'" ;;
  esac
  ranks=$1
}

check_use_of_ranks() {
  for each in $chosen; do
    [ "$(library_of "$each")" = mpi ] || fail 2 "--ranks: $each runs in one" \
      "process; those that run in several: $(recipes_on_ranks | tr '\n' ' ')"
  done
}

run_all() { # OPTION...
  results=$build/results
  rm -rf -- "$results" && mkdir -p -- "$results"
  worst=0 failed=
  for name in $chosen; do
    status=0
    run_one "$name" "$@" --json "$results/$name.json" || status=$?
    case $status in
      0) continue ;;
      130) exit 130 ;;
    esac
    failed="$failed $name (exit code $status)"
    [ "$worst" -ne 0 ] || worst=$status
  done
  set -- "$results"/*.json
  if [ -e "$1" ]; then
    say
    awk -f "$root/tools/lib/results.awk" -- "$@"
  fi
  [ -z "$failed" ] || complain "failed:$failed"
  return "$worst"
}

# Leading words name recipes; from the first option on all is the recipe's.
names='' count=0
while [ $# -gt 0 ]; do
  case $1 in -*) break ;; esac
  choose_recipes "$1"
  names="$names $chosen"
  count=$((count + 1))
  shift
done
if [ "$count" -eq 0 ]; then
  case "${1:-}" in --help | -h) usage && exit 0 ;; esac
fi
ranks='' left=$# # the other options are the recipe's
while [ "$left" -gt 0 ]; do
  word=$1
  shift
  left=$((left - 1))
  case $word in
    --ranks=*) check_ranks "${word#--ranks=}" ;;
    --ranks)
      [ "$left" -gt 0 ] || fail 2 "--ranks needs a number"
      check_ranks "$1"
      shift
      left=$((left - 1))
      ;;
    *) set -- "$@" "$word" ;;
  esac
done
# shellcheck disable=SC2086 # names of recipes are single words
choose_recipes $names
[ -z "$ranks" ] || check_use_of_ranks
if [ "$count" -ne 1 ]; then
  for word in "$@"; do
    case $word in
      --json | --json=* | --record | --record=*)
        fail 2 "$word names one file: use it with one recipe" ;;
    esac
  done
fi
need_to_build
get_missing
# shellcheck disable=SC2086 # names of recipes are single words
build $chosen
end_turn
if [ "$count" -eq 1 ]; then
  run_one "${chosen# }" "$@"
else
  run_all "$@"
fi
