# The target `libtorch`, where systems have LibTorch: Debian calls it libtorch-dev.
# Its own package would ask for C, and for CUDA's toolkit where it was built for it.
find_path(FUSEBOOK_LIBTORCH_HEADERS torch/csrc/api/include/torch/optim.h)
set(libraries)
foreach(name IN ITEMS torch torch_cpu c10)
  find_library(FUSEBOOK_LIBTORCH_${name} ${name})
  list(APPEND libraries ${FUSEBOOK_LIBTORCH_${name}})
endforeach()
mark_as_advanced(FUSEBOOK_LIBTORCH_HEADERS FUSEBOOK_LIBTORCH_torch
                 FUSEBOOK_LIBTORCH_torch_cpu FUSEBOOK_LIBTORCH_c10)
if(NOT "${FUSEBOOK_LIBTORCH_HEADERS};${libraries}" MATCHES "NOTFOUND")
  add_library(libtorch INTERFACE)
  target_include_directories(
    libtorch SYSTEM
    INTERFACE ${FUSEBOOK_LIBTORCH_HEADERS}
              ${FUSEBOOK_LIBTORCH_HEADERS}/torch/csrc/api/include)
  target_link_libraries(libtorch INTERFACE fuse_libtorch ${libraries})
endif()
