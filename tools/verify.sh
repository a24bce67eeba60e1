# shellcheck shell=sh
# ./fusebook verify [RECIPE...]
: "${root:?}" # set by ./fusebook

. "$root/tools/lib/samples.sh"

for word in "$@"; do
  case $word in -*) unknown "verify option" "$word" ;; esac
done
choose_recipes "$@"
with_samples verify
