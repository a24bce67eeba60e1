# shellcheck shell=sh
# ./fusebook docs [--serve] [--port N] [--update-translations]
: "${root:?}" # set by ./fusebook

check_port() {
  case $1 in
    '' | *[!0-9]* | ??????*) fail 2 "--port: '$1' is not a port; use 1 to 65535" ;;
  esac
  [ "$1" -ge 1 ] && [ "$1" -le 65535 ] ||
    fail 2 "--port: $1 is out of range; use 1 to 65535"
}

serving=no port=8000 updating=no
while [ $# -gt 0 ]; do
  case $1 in
    --serve) serving=yes ;;
    --update-translations) updating=yes ;;
    --port)
      [ $# -gt 1 ] || fail 2 "--port needs a number"
      shift
      port=$1
      ;;
    --port=*) port=${1#--port=} ;;
    *) unknown "docs option" "$1" --serve --port \
      --update-translations ;;
  esac
  check_port "$port"
  shift
done
need doxygen
need_environment docs
get_missing
docs_python=$root/build/python/docs/bin/python
if [ "$updating" = yes ]; then
  step "Updating the catalogues of the translation"
  "$docs_python" -B "$root/docs/fusebook_docs" translations --update 9>&- ||
    fail 1 "the catalogues were not updated (see above)"
  "$docs_python" -B "$root/docs/fusebook_docs" translations 9>&- ||
    fail 1 "the catalogues in docs/locale need work (see above)"
fi
step "Building the site"
html=$root/build/docs/html
"$docs_python" -B "$root/docs/fusebook_docs" site --out "$html" \
  --doctrees "$root/build/docs/doctrees" 9>&- ||
  fail 1 "the site has warnings or errors (see above)"
end_turn
say "The site: $html/index.html"
[ "$serving" = no ] ||
  exec "$docs_python" -B "$root/tools/lib/serve.py" "$html" "$port"
