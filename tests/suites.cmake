# The suites of each room as one program ROOM_tests, and each suite as a test of
# its own, which runs the cases of its file. Included by tests/CMakeLists.txt.

# Programs of their own: one has a main(), one counts what is allocated, one sees
# CUDA's headers, one is linked with OpenMP.
set(own_programs checkpoint_test allocation_test cuda_types_test openmp_test)
# Through millions of elements; all else is compiled without most optimisations,
# since oracles are loops over a few elements, and take longer to compile than to run.
set(optimised "^(random_.*|reduced_.*|float16|ops|loops)_test$")

# doctest itself takes longer to compile than most suites.
add_library(doctest_main OBJECT support/doctest_main.cpp)
target_link_libraries(doctest_main PUBLIC doctest::doctest)

# Tables of optimizers and schedulers, which several rooms go through.
file(GLOB tables CONFIGURE_DEPENDS support/*.cpp)
list(FILTER tables EXCLUDE REGEX "_(main|test)\\.cpp$")
add_library(test_tables STATIC ${tables})
target_include_directories(test_tables PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(test_tables PUBLIC fusebook)

# A check is a call, not a block of code. It does not catch what its expression throws:
# that ends the case.
target_compile_definitions(doctest::doctest
                           INTERFACE DOCTEST_CONFIG_SUPER_FAST_ASSERTS)

compile_quickly(${tables})

# suite_program(NAME SOURCE...)
function(suite_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE test_tables doctest::doctest)
  add_dependencies(unit_tests ${name})
  set_property(GLOBAL APPEND PROPERTY FUSEBOOK_SUITE_PROGRAMS ${name})
endfunction()

# suite_tests(PROGRAM SOURCE...): a test for each suite, named as its file.
function(suite_tests program)
  foreach(source IN LISTS ARGN)
    cmake_path(GET source STEM suite)
    add_test(NAME ${suite} COMMAND ${program} --source-file=*/${suite}.cpp)
    set_tests_properties(
      ${suite} PROPERTIES LABELS unit TIMEOUT 600
                          # A pattern that finds no case is no success.
                          FAIL_REGULAR_EXPRESSION "test cases: +0 \\|")
    if(NOT suite MATCHES "${optimised}")
      compile_quickly(${source})
    endif()
  endforeach()
endfunction()

# The thread sanitizer does not know how GCC's runtime synchronises.
if(NOT OpenMP_CXX_FOUND OR FUSEBOOK_SANITIZE STREQUAL "thread")
  list(APPEND left_out openmp_test)
endif()

get_property(rooms GLOBAL PROPERTY FUSEBOOK_ROOMS)
foreach(room IN LISTS rooms ITEMS convergence undefined_objects)
  file(GLOB suites CONFIGURE_DEPENDS ${room}/*_test.cpp)
  foreach(suite IN LISTS left_out)
    list(FILTER suites EXCLUDE REGEX "/${suite}\\.cpp$")
  endforeach()
  foreach(own IN LISTS own_programs)
    set(source ${CMAKE_CURRENT_SOURCE_DIR}/${room}/${own}.cpp)
    if(source IN_LIST suites)
      list(REMOVE_ITEM suites ${source})
      suite_program(${own} ${source})
      if(NOT own STREQUAL "checkpoint_test")
        target_link_libraries(${own} PRIVATE doctest_main)
      endif()
      suite_tests(${own} ${source})
    endif()
  endforeach()
  if(suites)
    suite_program(${room}_tests ${suites})
    target_link_libraries(${room}_tests PRIVATE doctest_main)
    suite_tests(${room}_tests ${suites})
    if(room STREQUAL "distributed")
      target_link_libraries(distributed_tests PRIVATE fuse_distributed)
      target_sources(distributed_tests PRIVATE bench_ranks/link_model.cpp)
    endif()
  endif()
endforeach()
