# shellcheck shell=sh
# ./fusebook clean [--cache]
: "${root:?}" # set by ./fusebook

# What belongs to this user and to every checkout.
user_cache() {
  case ${XDG_CACHE_HOME:-} in
    /*) say "$XDG_CACHE_HOME/fusebook" ;;
    *) say "${HOME:-}/.cache/fusebook" ;;
  esac
}

# Where the library keeps compiled kernels; nothing when it keeps none.
kernel_cache() {
  if [ -z "${FUSEBOOK_CACHE_DIR+set}" ]; then
    user_cache
    return
  fi
  case $FUSEBOOK_CACHE_DIR in
    off) ;;
    *) say "$FUSEBOOK_CACHE_DIR" ;;
  esac
}

remove_from_cache() {
  rm -rf -- "$(user_cache)-lint"
  folder=$(kernel_cache)
  if [ -z "$folder" ]; then
    say "FUSEBOOK_CACHE_DIR turns the kernel cache off; nothing to remove."
    return
  fi
  # The folder may be anyone's (FUSEBOOK_CACHE_DIR): only kernels are removed.
  for file in "$folder"/????????????????.fbk; do
    [ ! -f "$file" ] || rm -f -- "$file" || fail 1 "cannot remove $file"
  done
  say "Removed the compiled kernels in $folder"
}

cache=no
while [ $# -gt 0 ]; do
  case $1 in
    --cache) cache=yes ;;
    *) unknown "clean option" "$1" --cache ;;
  esac
  shift
done
rm -rf -- "$root/build" || fail 1 "cannot remove $root/build"
say "Removed $root/build"
[ "$cache" = no ] || remove_from_cache
