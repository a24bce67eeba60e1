# shellcheck shell=sh
# ./fusebook capture [--fresh] [RECIPE...] [examples] [kernels] [bench | peers |
# ranks | storages], and on a GPU --device NAME
: "${root:?}" # set by ./fusebook
unset FUSEBOOK_QUICK # what a page shows was measured

. "$root/tools/lib/samples.sh"

# Installs nothing: such a machine may have no network.
capture_on_gpu() { # DEVICE OUT STAGES RECIPE...
  device=$1 out=$2 only=$3
  shift 3
  find_python || fail 1 "capturing on a GPU needs Python 3.11 or newer"
  exec "$python" -B "$root/tests/gpu_capture" --device "$device" \
    ${out:+--out "$out"} ${only:+--only "$only"} "$@"
}

# README.md shows some of what was captured.
update_front() {
  "$python" -B "$root/docs/fusebook_docs" front --write
}

device=cpu fresh='' names='' out='' only='' examples=no kernels=no bench=no peers=no ranks=no
storages=no
while [ $# -gt 0 ]; do
  case $1 in
    --device)
      [ $# -gt 1 ] || fail 2 "--device needs a name"
      shift
      device=$1
      ;;
    --device=*) device=${1#--device=} ;;
    --out)
      [ $# -gt 1 ] || fail 2 "--out needs a folder"
      shift
      out=$1
      ;;
    --out=*) out=${1#--out=} ;;
    --only)
      [ $# -gt 1 ] || fail 2 "--only needs stages"
      shift
      only=$1
      ;;
    --only=*) only=${1#--only=} ;;
    --fresh) fresh=--fresh ;;
    examples) examples=only ;;
    kernels) kernels=only ;;
    bench) bench=only ;;
    peers) peers=only ;;
    ranks) ranks=only ;;
    storages) storages=only ;;
    -*) unknown "capture option" "$1" --device --out --only --fresh ;;
    *)
      choose_recipes "$1"
      names="$names $chosen"
      ;;
  esac
  shift
done
if [ "$bench$peers$ranks$storages" != nononono ]; then
  [ -z "$names" ] || fail 2 "capture bench, capture peers, capture ranks and" \
    "capture storages measure the library, not recipes"
  [ "$bench" = no ] || capture_bench || return 1
  [ "$peers" = no ] || capture_peers || return 1
  [ "$ranks" = no ] || capture_ranks || return 1
  [ "$storages" = no ] || capture_storages
  return
fi
if [ "$examples" = only ] && [ -z "$names" ]; then
  run_examples --write
  update_front
  return
fi
[ -n "$names" ] || examples=yes
[ "$kernels" = only ] || kernels=yes
# shellcheck disable=SC2086 # names of recipes are single words
choose_recipes $names
if [ "$device" != cpu ]; then
  # shellcheck disable=SC2086 # names of recipes are single words
  capture_on_gpu "$device" "$out" "$only" $chosen
  return
fi
[ -z "$out$only" ] ||
  fail 2 "--out and --only require --device cuda or cuda-sim"
if [ "$kernels" = only ]; then
  with_kernels --write
  return
fi
captured=yes
with_samples capture --device "$device" ${fresh:+"$fresh"} || captured=no
step "Checking what CONTRIBUTING.md asks of a recipe"
for recipe in $chosen; do
  "$python" -B "$root/docs/fusebook_docs" limits --recipe "$recipe" ||
    captured=no
done
if has_environment cuda; then
  with_kernels --write || captured=no
else
  say "What compilers make of the kernels was not captured, because CUDA's" \
    "compilers are not installed. To install and run them: ./fusebook capture" \
    "kernels"
fi
[ "$examples" = no ] || run_examples --write || captured=no
update_front || captured=no
[ "$captured" = yes ]
