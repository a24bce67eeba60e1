# Refuses a compiler that cannot build the library, or a program that uses it. Also
# part of an installed copy.
set(fusebook_oldest_GNU 12)
set(fusebook_oldest_Clang 15)
set(fusebook_oldest "${fusebook_oldest_${CMAKE_CXX_COMPILER_ID}}")
if(fusebook_oldest AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS fusebook_oldest)
  message(FATAL_ERROR
    "Fusebook needs g++ 12 or clang++ 15, or newer, and ${CMAKE_CXX_COMPILER} is "
    "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}: set CXX or "
    "CMAKE_CXX_COMPILER to another compiler. It may still compile kernels at run "
    "time (FUSEBOOK_CXX).")
endif()
