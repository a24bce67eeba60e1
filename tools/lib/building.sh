# shellcheck shell=sh
# Configures and builds, one call of ./fusebook at a time.
: "${root:?}" "${preset:?}" "${with_cuda:?}" "${python?}" # set by ./fusebook

turn=no # whether it is this call's

# Two calls at once take turns; the kernel drops the lock with the process.
take_turn() {
  mkdir -p -- "$root/build" ||
    fail 1 "cannot write to $root/build"
  [ "$turn" = no ] && have flock || return 0
  turn=yes
  exec 9>"$root/build/.turn"
  flock -n 9 || {
    say "Waiting for another ./fusebook in this checkout..."
    flock 9
  }
}

end_turn() {
  turn=no
  exec 9>&-
}

cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }

is_configured() {
  [ -e "$build/build.ninja" ] || return 1
  [ ! "$root/CMakePresets.json" -nt "$build/build.ninja" ] || return 1
  # Installed since: look again.
  case $(cached doctest_DIR) in
    *-NOTFOUND) ! doctest_found || return 1 ;;
  esac
  case $(cached MPI_CXX_COMPILER) in
    *-NOTFOUND) ! is_found mpi || return 1 ;;
  esac
  case $(cached FUSEBOOK_LIBTORCH_HEADERS) in
    *-NOTFOUND) ! is_found libtorch || return 1 ;;
  esac
  case $(cached FUSEBOOK_PYTHON) in
    *-NOTFOUND) [ -z "$python" ] || return 1 ;;
  esac
  [ "$with_cuda" = no ] ||
    [ "$(cached FUSEBOOK_NVRTC_FOLDER)" = "$(nvrtc_folders)" ]
}

configure() {
  if [ -e "$build/CMakeCache.txt" ] &&
    [ "$(cached CMAKE_HOME_DIRECTORY)" != "$root" ]; then
    say "The checkout was moved: rebuilding build/$preset."
    rm -rf -- "$build"
  fi
  is_configured && return
  step "Configuring ($preset)"
  compiler_works ||
    fail 2 "CXX is '${CXX:-}', which is not a program on this machine; unset" \
      "it, or set it to a C++ compiler"
  # What looks like a variable CMake would expand, and build elsewhere.
  # shellcheck disable=SC2016 # that is what the message says
  case $root in
    *[\;\"\\\|]* | *[[:cntrl:]]* | *\$*\{*) fail 1 "CMake cannot build in a" \
      'folder whose path contains ; " \ | ${ or a control character:' \
      "move $root" ;;
  esac
  mkdir -p -- "$build"
  set --
  [ "$with_cuda" = no ] || set -- "-DFUSEBOOK_NVRTC_FOLDER=$(nvrtc_folders)"
  (cd -- "$root" && cmake --preset "$preset" \
    ${python:+"-DFUSEBOOK_PYTHON=$python"} "$@") >"$build/configure.log" 2>&1 || {
    cat -- "$build/configure.log" >&2
    fail 1 "configuring failed (see above)"
  }
}

# So that new files are known, too.
configure_anew() {
  configure
  (cd -- "$root" && cmake --build --preset "$preset" --target build.ninja) \
    >"$build/configure.log" 2>&1 || {
    cat -- "$build/configure.log" >&2
    fail 1 "configuring failed (see above)"
  }
}

build() { # TARGET...
  configure
  step "Building ($preset): $*"
  (cd -- "$root" && cmake --build --preset "$preset" --target "$@") ||
    fail 1 "the build failed (see above)"
}

check_preset() {
  case $preset in
    release | debug | asan | tsan) build=$root/build/$preset ;;
    *) unknown preset "$preset" release debug asan tsan ;;
  esac
}
