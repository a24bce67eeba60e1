# shellcheck shell=sh
# The recipes of the book and their exercises.
: "${root:?}" # set by ./fusebook

recipes() {
  for file in "$root"/recipes/*.cpp; do
    [ -e "$file" ] || continue
    file=${file##*/}
    say "${file%.cpp}"
  done
}

chosen= # as the command line says

# Sets `chosen` to the recipes among the words, which must all be recipes.
choose_recipes() {
  chosen=
  for name in "$@"; do
    short=${name##*/}
    short=${short%.cpp}
    if [ -z "$short" ] || [ ! -e "$root/recipes/$short.cpp" ]; then
      # shellcheck disable=SC2046 # names of recipes are single words
      unknown recipe "$name" $(recipes)
    fi
    chosen="$chosen $short"
  done
  [ -n "$chosen" ] || chosen=$(recipes)
  [ -n "$chosen" ] || fail 1 "no recipes found in $root/recipes"
}

exercises_of() { # RECIPE
  for file in "$root/docs/exercises/$1"/*.patch; do
    [ -e "$file" ] || continue
    file=${file##*/}
    say "${file%.patch}"
  done
}
