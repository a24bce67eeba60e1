# shellcheck shell=sh
# The programs that commands need: which are there, which are too old, and what
# Debian calls them.
: "${no_install:?}" # set by ./fusebook

# at_least 3.25 3.31.2: is the second version at least the first?
at_least() {
  awk -v want="$1" -v is="$2" 'BEGIN {
    n = split(want, w, "."); split(is, v, ".")
    for (i = 1; i <= n; i++) {
      if (v[i] + 0 > w[i] + 0) exit 0
      if (v[i] + 0 < w[i] + 0) exit 1
    }
  }'
}

first_number() { sed -n 's/^[^0-9]*\([0-9][0-9.]*\).*/\1/p' | head -n 1; }

find_python() {
  for python in "${FUSEBOOK_PYTHON:-python3}" /usr/bin/python3; do
    have "$python" && "$python" -c "import sys
sys.exit(sys.version_info < (3, 11))" 2>/dev/null && return
  done
  python=
  return 1
}

find_python_with_venv() {
  for python in "${FUSEBOOK_PYTHON:-python3}" /usr/bin/python3; do
    have "$python" && "$python" -c "import ensurepip, sys, venv
sys.exit(sys.version_info < (3, 11))" 2>/dev/null && return
  done
  python=
  return 1
}

# Fonts that have Chinese, for pages in Chromium.
chinese_fonts() {
  [ -e /usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc ] ||
    { have fc-list && [ -n "$(fc-list :lang=zh-cn)" ]; }
}

# One that the headers are promised for, under a name that says which it is.
find_clang() {
  for clang in 15 16 17 18 19 20 21 22; do
    ! have "clang++-$clang" || return 0
  done
  return 1
}

# The environments are made by the same Python.
has_python_headers() {
  find_python_with_venv && "$python" -c "import os, sys, sysconfig
sys.exit(not os.path.exists(sysconfig.get_paths()['include'] + '/Python.h'))"
}

# The shell without windows takes half the time of a whole browser.
find_chromium() {
  for chromium in "${FUSEBOOK_CHROMIUM:-chromium-headless-shell}" \
    chromium-headless-shell chromium chromium-browser google-chrome; do
    have "$chromium" && return
  done
  chromium=
  return 1
}

# CXX may be one program, with spaces in its path or not, or words such as
# "ccache g++".
cxx() { # ARGUMENT...
  if have "${CXX:-c++}"; then
    "${CXX:-c++}" "$@"
  else
    ${CXX:-g++} "$@"
  fi
}

compiler_works() {
  if [ -n "${CXX:-}" ]; then
    have "$CXX" || have "${CXX%% *}"
  else
    have c++ || have g++
  fi
}

doctest_found() {
  [ -e /usr/include/doctest/doctest.h ] ||
    [ -e /usr/local/include/doctest/doctest.h ] ||
    echo '#include <doctest/doctest.h>' | cxx -E -x c++ - >/dev/null 2>&1
}

# A library is where systems have it, or where CMake is told to look.
header_found() { # HEADER
  (
    IFS=:
    for prefix in /usr /usr/local ${CMAKE_PREFIX_PATH:-}; do
      [ ! -e "$prefix/include/$1" ] || exit 0
    done
    exit 1
  )
}

is_found() {
  case $1 in
    # A CXX that is wrong is not put right by installing g++.
    compiler) [ -n "${CXX:-}" ] || compiler_works ;;
    cmake) have cmake ;;
    ninja) have ninja ;;
    eigen) header_found eigen3/Eigen/Core ;;
    json) header_found nlohmann/json.hpp ;;
    cli) header_found CLI/CLI.hpp ;;
    fmt) header_found fmt/core.h ;;
    doctest) doctest_found ;;
    python) find_python ;;
    venv) find_python_with_venv ;;
    chromium) find_chromium ;;
    doxygen) have doxygen ;;
    pkgconfig) have pkg-config ;;
    mpi) have mpirun && have mpicxx ;;
    libtorch) header_found torch/csrc/api/include/torch/optim.h ;;
    chinese) chinese_fonts ;;
    clang) find_clang ;;
    pythondev) has_python_headers ;;
  esac
}

package_of() {
  case $1 in
    compiler) echo g++ ;;
    cmake) echo cmake ;;
    ninja) echo ninja-build ;;
    eigen) echo libeigen3-dev ;;
    json) echo nlohmann-json3-dev ;;
    cli) echo libcli11-dev ;;
    fmt) echo libfmt-dev ;;
    doctest) echo doctest-dev ;;
    python) echo python3 ;;
    venv) echo python3-venv ;;
    doxygen) echo doxygen ;;
    pkgconfig) echo pkg-config ;;
    mpi) echo libopenmpi-dev openmpi-bin ;;
    libtorch) echo libtorch-dev ;;
    chinese) echo fonts-noto-cjk ;;
    clang) echo clang-15 ;;
    pythondev) echo python3-dev ;;
    chromium) if is_like ubuntu; then echo chromium-browser; else
      echo chromium-headless-shell; fi ;;
  esac
}

is_debian() {
  [ -r /etc/os-release ] && (
    # shellcheck disable=SC1091 # a file of the system
    . /etc/os-release
    [ "${ID:-}" = debian ]
  )
}

is_like() {
  [ -r /etc/os-release ] && (
    # shellcheck disable=SC1091 # a file of the system
    . /etc/os-release
    case " ${ID:-} ${ID_LIKE:-} " in *" $1 "*) exit 0 ;; esac
    exit 1
  )
}

version_of() {
  case $1 in
    compiler) cxx -dumpfullversion -dumpversion ;;
    cmake) cmake --version | first_number ;;
    ninja) ninja --version ;;
    eigen) awk '/^#define EIGEN_(WORLD|MAJOR|MINOR)_VERSION / {
        printf "%s%s", dot, $3; dot = "." }' \
      /usr/include/eigen3/Eigen/src/Core/util/Macros.h ;;
    json) sed -n 's/.*version \([0-9.]*\)$/\1/p' \
      /usr/include/nlohmann/json.hpp | head -n 1 ;;
    cli) sed -n 's/.*CLI11_VERSION "\(.*\)"$/\1/p' /usr/include/CLI/Version.hpp ;;
    fmt) awk '/^#define FMT_VERSION / {
        printf "%d.%d.%d", $3 / 10000, $3 / 100 % 100, $3 % 100 }' \
      /usr/include/fmt/core.h /usr/include/fmt/base.h ;;
    doctest) awk '/^#define DOCTEST_VERSION_(MAJOR|MINOR|PATCH) / {
        printf "%s%s", dot, $3; dot = "." }' /usr/include/doctest/doctest.h ;;
    python | venv | pythondev) "$python" -V | first_number ;;
    chromium) "$chromium" --version | first_number ;;
    doxygen) doxygen --version | first_number ;;
    pkgconfig) pkg-config --version ;;
    mpi) mpirun --version | first_number ;;
  esac 2>/dev/null
}

oldest_of() {
  case $1 in
    compiler) echo 12 ;;
    cmake) echo 3.25 ;;
    eigen) echo 3.4 ;;
    json) echo 3.10 ;;
    cli) echo 2.1 ;;
    fmt) echo 9 ;;
    doxygen) echo 1.9 ;;
    python | venv) echo 3.11 ;;
    *) echo 0 ;;
  esac
}

packages= # Debian packages to install

need() {
  for thing in "$@"; do
    is_found "$thing" && continue
    package=$(package_of "$thing")
    case "$packages " in
      *" $package "*) ;;
      *) packages="$packages $package" ;;
    esac
  done
}

# The same where a test is left out without it: only what Debian itself has, and
# nothing is asked for where nothing may be installed.
wish() { # THING...
  [ "$no_install" = no ] && have apt-get && is_debian && as_root >/dev/null ||
    return 0
  need "$@"
}

# What every build needs, and more.
need_to_build() { # THING...
  need compiler cmake ninja eigen fmt json cli "$@"
}
