# shellcheck shell=sh
# Installs what is missing, after asking where someone can be asked.
: "${yes:?}" "${no_install:?}" "${with_cuda:?}" # set by ./fusebook

as_root() {
  if [ "$(id -u)" = 0 ]; then
    echo
  elif have sudo; then
    if [ -t 0 ]; then echo sudo; else echo sudo -n; fi
  else
    return 1
  fi
}

install_line() {
  prefix=$(as_root) || prefix="(as root)"
  say "${prefix:+$prefix }apt-get install -y --no-install-recommends$packages"
}

list_missing() {
  say "Missing for this command:"
  [ -z "$packages" ] || say "  Debian packages:$packages"
  for name in $environments; do
    say "  Python packages, into build/python/$name:" \
      "$(requirements_of "$name" | sed 's|.*/\([^/]*/[^/]*\)$|\1|' | tr '\n' ' ')"
  done
}

may_install() {
  [ "$no_install" = no ] || return 1
  [ "$yes" = no ] && [ -t 0 ] && [ -t 1 ] || return 0
  printf 'Install them now? [Y/n] '
  read -r answer || return 1
  case $answer in '' | y* | Y*) return 0 ;; *) return 1 ;; esac
}

say_how() {
  if [ -n "$packages" ] && ! have apt-get; then
    complain "this system has no apt-get: install its equivalents of the" \
      "Debian packages$packages, then run ./fusebook again"
  elif [ -n "$packages" ]; then
    complain "install them with:  $(install_line)"
  fi
  [ -z "$environments" ] || complain "to install the Python packages, run the same" \
    "command without --no-install"
}

install_packages() {
  [ -n "$packages" ] || return 0
  if ! have apt-get || ! prefix=$(as_root); then
    say_how
    exit 1
  fi
  step "Installing$packages"
  get="env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0"
  # shellcheck disable=SC2086 # lists of words
  { $prefix $get update && $prefix $get install -y --no-install-recommends \
    $packages; } </dev/null ||
    fail 1 "apt-get failed (see above): check the network and that no other" \
      "apt-get is running. By hand: $(install_line)"
}

# Gets all that was needed, and begins this call's turn.
get_missing() {
  [ "$with_cuda" = no ] || need_environment cuda cublas
  if [ -n "$packages$environments" ]; then
    list_missing
    may_install || {
      say_how
      exit 1
    }
  fi
  take_turn
  install_packages
  for name in $environments; do
    is_made "$name" || make_environment "$name"
  done
  packages='' environments=
  [ "$with_cuda" = no ] || [ -n "$(nvrtc_folders)" ] ||
    fail 1 "the packages in build/python/cuda contain no libnvrtc: remove" \
      "that folder and run the command again"
}
