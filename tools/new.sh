# shellcheck shell=sh
# ./fusebook new NAME [--title TITLE]
: "${root:?}" "${python?}" "${no_install:?}" # set by ./fusebook

new_name='' title=''
while [ $# -gt 0 ]; do
  case $1 in
    --title)
      [ $# -gt 1 ] || fail 2 "--title needs a title"
      shift
      title=$1
      ;;
    --title=*) title=${1#--title=} ;;
    -*) unknown "new option" "$1" --title ;;
    *)
      [ -z "$new_name" ] || fail 2 "new makes one recipe: '$new_name', or '$1'?"
      new_name=$1
      ;;
  esac
  shift
done
[ -n "$new_name" ] || fail 2 "new needs the name of a recipe, such as my_recipe"
find_python || fail 1 "new needs Python 3.11 or newer"

make_recipe() { # OPTION...
  "$python" -B "$root/docs/fusebook_docs" new --recipe="$new_name" \
    ${title:+"--title=$title"} "$@"
}

# Where nothing may be installed, this waits.
makes_catalogue() {
  [ "$no_install" = no ] || { is_made docs && have doxygen; }
}

make_recipe --check || exit
need_to_build python
if makes_catalogue; then
  need doxygen
  need_environment docs
fi
get_missing
make_recipe || exit
set -- "$new_name"
. "$root/tools/capture.sh" || exit
if makes_catalogue; then
  step "Making the entries of its translation"
  "$root/build/python/docs/bin/python" -B "$root/docs/fusebook_docs" translations \
    --update 9>&- || fail 1 "the entries were not made (see above)"
  chinese="Its Chinese is asked for by ./fusebook test: the entries are in docs/locale, \
and empty."
else
  chinese="Its Chinese is asked for: ./fusebook docs --update-translations"
fi
say
say "recipes/$new_name.cpp is a page now, and yours to change. What stands" \
  "around the program is in docs/about/$new_name.rst, its place among the" \
  "recipes in docs/gallery.toml. After a change: ./fusebook capture $new_name." \
  "$chinese"
