# shellcheck shell=sh
# ./fusebook verify [RECIPE...]; without names the examples of the reference too
: "${root:?}" # set by ./fusebook

. "$root/tools/lib/samples.sh"

for word in "$@"; do
  case $word in -*) unknown "verify option" "$word" ;; esac
done
choose_recipes "$@"
verified=yes
with_samples verify || verified=no
[ $# -gt 0 ] || run_examples "$@" || verified=no
[ "$verified" = yes ]
