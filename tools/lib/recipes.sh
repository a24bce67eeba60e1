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

# What a recipe includes besides what all do: libtorch, mpi, or nothing.
library_of() { # RECIPE
  is_script "$1" ||
    sed -n -e 's|^#include "fusebook/libtorch/.*|libtorch|p' \
      -e 's|^#include "fusebook/distributed/.*|mpi|p' "$root/recipes/$1.cpp" |
    head -n 1
}

name_of_library() { # THING
  case $1 in libtorch) echo LibTorch ;; mpi) echo MPI ;; esac
}

recipes_on_ranks() {
  for each in $(recipes); do
    [ "$(library_of "$each")" != mpi ] || say "$each"
  done
}

need_for_recipe() { # RECIPE
  library=$(library_of "$1")
  [ -z "$library" ] || need "$library"
  is_script "$1" || return 0
  need pythondev
  need_environment module
}

# Those that can be built here.
recipes_of_here() {
  for name in $(recipes); do
    library=$(library_of "$name")
    if [ -n "$library" ] && ! is_found "$library"; then
      complain "$name is left out: $(name_of_library "$library") is not installed" \
        "($(package_of "$library"))"
    elif [ "$library" = mpi ] && [ "$preset" != release ] && [ "$preset" != debug ]; then
      complain "$name is left out: MPI is built without a sanitizer"
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
