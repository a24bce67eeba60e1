# Sources of test programs are compiled several at a time, as those of rooms are
# (cmake/room.cmake); suites in namespaces of their own, since all of them have
# helpers of the same names. Included by tests/CMakeLists.txt.
set(joiner ${CMAKE_CURRENT_LIST_DIR}/joined_sources.py)
# Touched by the joiner when other groups are needed.
set(groups ${CMAKE_CURRENT_BINARY_DIR}/joined/groups.stamp)
if(NOT EXISTS ${groups})
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/joined)
  file(TOUCH ${groups})
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${joiner} ${groups})

# join(PROGRAM): puts joined sources in place of those that PROGRAM has, where they
# have the same options. What uses definitions of its own stays alone.
function(join program)
  if(NOT FUSEBOOK_JOIN OR NOT FUSEBOOK_PYTHON)
    return()
  endif()
  get_target_property(sources ${program} SOURCES)
  set(alone)
  set(keys)
  foreach(source IN LISTS sources)
    if(source MATCHES "^\\$<")
      list(APPEND alone ${source})
      continue()
    endif()
    cmake_path(ABSOLUTE_PATH source)
    cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${source} generated)
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    get_source_file_property(definitions ${source} COMPILE_DEFINITIONS)
    if(definitions OR generated)
      list(APPEND alone ${source})
    else()
      if(NOT options)
        set(options)
      endif()
      string(MAKE_C_IDENTIFIER "options ${options}" key)
      if(NOT key IN_LIST keys)
        list(APPEND keys ${key})
        set(with_${key})
      endif()
      list(APPEND with_${key} ${source})
      set(options_${key} ${options})
    endif()
  endforeach()
  set(number 0)
  set(apart)
  foreach(key IN LISTS keys)
    execute_process(
      COMMAND ${FUSEBOOK_PYTHON} -B ${joiner} groups ${FUSEBOOK_JOINED_AT_ONCE}
              ${with_${key}}
      RESULT_VARIABLE failed ERROR_VARIABLE error
      OUTPUT_VARIABLE lines OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(failed)  # an old Python, perhaps: each is compiled by itself
      message(STATUS "The sources of ${program} are not joined: ${error}")
      return()
    endif()
    string(REPLACE ";" "|" lines "${lines}")
    string(REPLACE "\n" ";" lines "${lines}")
    foreach(line IN LISTS lines)
      string(REPLACE "|" ";" group "${line}")
      math(EXPR number "${number} + 1")
      set(joined ${CMAKE_CURRENT_BINARY_DIR}/joined/${program}_${number}.cpp)
      add_custom_command(
        OUTPUT ${joined}
        COMMAND ${FUSEBOOK_PYTHON} -B ${joiner} join ${joined} ${group}
        DEPENDS ${joiner} ${group}
        COMMENT "Joining sources of ${program}" VERBATIM)
      set(options ${options_${key}})
      foreach(source IN LISTS group)  # what lies beside it is included by its name
        cmake_path(GET source PARENT_PATH folder)
        list(APPEND options -iquote${folder})
      endforeach()
      list(REMOVE_DUPLICATES options)
      set_source_files_properties(${joined} PROPERTIES COMPILE_OPTIONS "${options}")
      list(REMOVE_ITEM with_${key} ${group})
      list(APPEND apart ${group})
      list(APPEND alone ${joined})
    endforeach()
    list(APPEND alone ${with_${key}})
  endforeach()
  if(NOT apart)
    return()
  endif()
  set_target_properties(${program} PROPERTIES SOURCES "${alone}")
  fuse_each_source(${program} ${apart})
endfunction()
