# shellcheck shell=sh
# The recipes of the book and their exercises.
: "${root:?}" "${preset:?}" # set by ./fusebook

recipes() {
  for file in "$root"/recipes/*.cpp "$root"/recipes/*.py; do
    [ -e "$file" ] || continue
    file=${file##*/}
    say "${file%.*}"
  done
}

is_script() { # RECIPE
  [ -e "$root/recipes/$1.py" ]
}

# A recipe that trains with LibTorch includes what the library has for that.
uses_libtorch() { # RECIPE
  ! is_script "$1" &&
    grep -q '^#include "fusebook/libtorch/' "$root/recipes/$1.cpp"
}

need_for_recipe() { # RECIPE
  ! uses_libtorch "$1" || need libtorch
  is_script "$1" || return 0
  need pythondev
  need_environment module
}

# Those that can be built here.
recipes_of_here() {
  for name in $(recipes); do
    if uses_libtorch "$name" && ! is_found libtorch; then
      complain "$name is left out: LibTorch is not installed ($(package_of libtorch))"
    elif is_script "$name" && [ "$preset" != release ] && [ "$preset" != debug ]; then
      complain "$name is left out: Python is built without a sanitizer"
    elif is_script "$name" && ! { is_made module && is_found pythondev; }; then
      complain "$name is left out: its Python packages are not installed;" \
        "./fusebook run $name installs them"
    else
      say "$name"
    fi
  done
}

chosen= # as the command line says

# Sets `chosen` to the recipes among the words, which must all be recipes; without
# words, to those that can be built here. What those that are named need is installed.
choose_recipes() {
  chosen=
  for name in "$@"; do
    short=${name##*/}
    short=${short%.cpp}
    short=${short%.py}
    if [ -z "$short" ] || { [ ! -e "$root/recipes/$short.cpp" ] &&
      ! is_script "$short"; }; then
      # shellcheck disable=SC2046 # names of recipes are single words
      unknown recipe "$name" $(recipes)
    fi
    need_for_recipe "$short"
    chosen="$chosen $short"
  done
  [ -n "$chosen" ] || chosen=$(recipes_of_here)
  [ -n "$chosen" ] || fail 1 "no recipes found in $root/recipes"
}

exercises_of() { # RECIPE
  for file in "$root/docs/exercises/$1"/*.patch; do
    [ -e "$file" ] || continue
    file=${file##*/}
    say "${file%.patch}"
  done
}
