# Writes what ties headers to their library: a variable that is named after the
# content of all headers.
#
#   cmake -D ROOT=... -D OUT=... -D VERSION=... -P headers_hash.cmake
#
# OUT receives version.cpp, which defines it, and headers.h, which is installed and
# needs it.
file(GLOB headers ${ROOT}/common/fusebook.h ${ROOT}/kernels/*/*.h
     ${ROOT}/kernels/*/*.def ${ROOT}/kernels/*/*.inc ${ROOT}/common/*/*.h)
list(SORT headers)
set(all "")
foreach(header IN LISTS headers)
  cmake_path(RELATIVE_PATH header BASE_DIRECTORY ${ROOT} OUTPUT_VARIABLE name)
  file(SHA256 ${header} content)
  string(APPEND all "${name} ${content}\n")
endforeach()
string(SHA256 HASH "${all}")
string(SUBSTRING ${HASH} 0 16 HASH)
foreach(name IN ITEMS version.cpp headers.h)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${name}.in ${OUT}/${name} @ONLY)
endforeach()
