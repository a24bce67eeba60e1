# shellcheck shell=sh
# Python environments, build/python/NAME: one for each purpose, made from pinned
# requirements.
: "${root:?}" "${python?}" # set by ./fusebook

requirements_of() {
  case $1 in
    docs) set -- "$root/docs/requirements.txt" ;;
    pages) set -- "$root/docs/requirements.txt" \
      "$root/docs/requirements-test.txt" ;;
    *) set -- "$root/tests/requirements-$1.txt" ;;
  esac
  for file in "$@"; do
    [ ! -e "$file" ] || say "$file"
  done
}

# What an environment must have been made from to count as made.
key_of() {
  requirements_of "$1" | while IFS= read -r file; do cat -- "$file"; done |
    sha256sum
}

is_made() {
  made=$root/build/python/$1
  [ -x "$made/bin/python" ] && [ -r "$made/ready" ] &&
    [ "$(cat -- "$made/ready")" = "$(key_of "$1")" ]
}

has_environment() { [ -e "$root/build/python/$1/ready" ]; }

environments= # to make

need_environment() {
  for name in "$@"; do
    case $name in pages) set -- docs "$@" ;; esac
  done
  for name in "$@"; do
    case "$environments " in *" $name "*) continue ;; esac
    is_made "$name" || environments="$environments $name"
  done
  [ -z "$environments" ] || need venv
}

# One pip installs into all of them: to make one takes longer than most installs.
make_pip() {
  pip=$root/build/python/pip
  [ ! -e "$pip/ready" ] || return 0
  rm -rf -- "$pip"
  mkdir -p -- "$pip"
  "$python" -m venv "$pip" && : >"$pip/ready"
}

# Tests of pages need what builds the site: they find it where it is.
share_docs() { # ENVIRONMENT
  [ "$1" = pages ] || return 0
  for folder in "$made"/lib/python3*/site-packages; do
    version=${folder%/site-packages}
    say "../../../../docs/lib/${version##*/}/site-packages" \
      >"$folder/docs.pth" || return 1
  done
}

make_environment() {
  made=$root/build/python/$1
  step "Python packages for $1"
  find_python_with_venv ||
    fail 1 "Python 3.11 or newer with venv was not found: install python3-venv"
  rm -rf -- "$made"
  mkdir -p -- "$made"
  environment=$1
  set --
  while IFS= read -r file; do
    set -- "$@" -r "$file"
  done <<END
$(requirements_of "$environment")
END
  {
    make_pip && "$python" -m venv --without-pip "$made" &&
      share_docs "$environment" &&
      "$pip/bin/python" -m pip --disable-pip-version-check \
        --python "$made/bin/python" install --progress-bar off "$@"
  } || fail 1 "cannot install the Python packages (see above): check the network," \
      "then run the command again; nothing half-installed is used"
  # Written last: only a complete environment counts.
  key_of "$environment" >"$made/ready"
}

# Where the packages of the environment `cuda` have NVRTC, as CMake's list.
nvrtc_folders() {
  folders=
  for file in "$root"/build/python/cuda/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.* \
    "$root"/build/python/cublas/lib/python3*/site-packages/nvidia/*/lib/libcublas.so.*; do
    [ -e "$file" ] || continue
    folders="$folders${folders:+;}${file%/*}"
  done
  say "$folders"
}
