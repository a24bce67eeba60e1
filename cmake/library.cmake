# fuse_library(NAME VERSION PACKAGE): finds a library that is not ours, or says what
# to install. A macro, so that what it finds is known to whoever calls it.
macro(fuse_library name version package)
  find_package(${name} ${version} NO_MODULE QUIET)
  if(NOT ${name}_FOUND)
    message(FATAL_ERROR
      "${name} ${version} was not found: install ${package}, or let ./fusebook "
      "do it. The variable CMAKE_PREFIX_PATH may name a folder like /usr that has "
      "it.")
  endif()
endmacro()
