# A room is a folder of kernels/ or common/: one idea, one library, one folder of
# headers. It sees the rooms that it links, and those that they link, so that an
# include that runs up does not compile.
#
#   fuse_room(BELOW...)   in the folder's CMakeLists.txt
#
# makes the library fuse_FOLDER, which users know as fusebook::FOLDER. Headers are
# included as "fusebook/FOLDER/x.h",
# as from an installed copy: a folder in the build tree that holds nothing but a
# link of that name is what the library exposes. Tests that compile the sources
# once more find all such links in ${FUSEBOOK_ALL_HEADERS}, and the sources in the
# global properties FUSEBOOK_SOURCES_kernels and FUSEBOOK_SOURCES_common.
set(FUSEBOOK_ALL_HEADERS ${PROJECT_BINARY_DIR}/rooms/all)

# fuse_link(VIEW PATH): makes PATH, a folder or a file, visible there.
function(fuse_link view path)
  cmake_path(GET path FILENAME name)
  file(MAKE_DIRECTORY ${view}/fusebook)
  file(CREATE_LINK ${path} ${view}/fusebook/${name} SYMBOLIC)
endfunction()

function(fuse_room)
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME name)
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR PARENT_PATH floor)
  cmake_path(GET floor FILENAME floor)
  set(view ${PROJECT_BINARY_DIR}/rooms/${name})
  fuse_link(${view} ${CMAKE_CURRENT_SOURCE_DIR})
  fuse_link(${FUSEBOOK_ALL_HEADERS} ${CMAKE_CURRENT_SOURCE_DIR})

  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  list(FILTER sources EXCLUDE REGEX "_x86_64_v[34]\\.cpp$")
  set_property(GLOBAL APPEND PROPERTY FUSEBOOK_SOURCES_${floor} ${sources})
  if(sources)
    add_library(fuse_${name} STATIC ${sources})
    set(scope PUBLIC)
    fuse_headers_only(${name} fuse_fmt)  # for messages
    if(FUSEBOOK_JOIN)
      # Deferred until it is known which sources have options of their own.
      cmake_language(EVAL CODE "cmake_language(DEFER CALL fuse_join fuse_${name})")
    endif()
  else()
    add_library(fuse_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(fusebook::${name} ALIAS fuse_${name})
  set_target_properties(fuse_${name} PROPERTIES EXPORT_NAME ${name}
                                                OUTPUT_NAME fusebook_${name})
  target_compile_features(fuse_${name} ${scope} cxx_std_20)
  target_include_directories(
    fuse_${name} ${scope} $<BUILD_INTERFACE:${view}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  # Places that programs print are those of the checkout.
  target_compile_options(
    fuse_${name} ${scope}
    $<BUILD_INTERFACE:-fmacro-prefix-map=${view}/fusebook/=${floor}/>)
  list(TRANSFORM ARGN PREPEND fuse_ OUTPUT_VARIABLE below)
  target_link_libraries(fuse_${name} ${scope} ${below})
  set_property(GLOBAL APPEND PROPERTY FUSEBOOK_ROOMS ${name})
  set_property(GLOBAL APPEND PROPERTY FUSEBOOK_ROOMS_${floor} fuse_${name})
endfunction()

# fuse_x86_level(CHOOSER LEVEL OPTION...): NAME_x86_64_vLEVEL.cpp of the room, where
# CHOOSER is NAME.cpp, is compiled for that level of the instruction set with these
# options. CHOOSER takes one at run time; FUSE_X86_LEVELS tells it that they are
# there.
function(fuse_x86_level chooser level)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    return()
  endif()
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME room)
  cmake_path(GET chooser STEM name)
  set(source ${name}_x86_64_v${level}.cpp)
  target_sources(fuse_${room} PRIVATE ${source})
  set_source_files_properties(
    ${source} PROPERTIES COMPILE_OPTIONS "${ARGN};-march=x86-64-v${level}")
  set_source_files_properties(${chooser} PROPERTIES COMPILE_DEFINITIONS
                                                    FUSE_X86_LEVELS)
endfunction()

# fuse_headers_only(ROOM TARGET): a library of headers that the room's own sources
# need, and users of the room do not.
function(fuse_headers_only room target)
  target_link_libraries(fuse_${room} PRIVATE $<BUILD_INTERFACE:${target}>)
endfunction()

# Most of a compiler's time goes into headers, so that sources are compiled several
# at a time. With more at a time a rebuild after one change would take longer.
option(FUSEBOOK_JOIN "Compile several sources at a time" ${PROJECT_IS_TOP_LEVEL})
set(FUSEBOOK_JOINED_AT_ONCE 8)

# Each source by itself, for the compile database, which editors and clang-tidy read.
# Only a nightly test builds it, to find a source that lacks an include.
if(FUSEBOOK_JOIN)
  add_custom_target(fusebook_each_source)
endif()

# fuse_can_join(SOURCE VARIABLE): whether a source may be joined: not if it defines
# macros for headers, is generated, or has options of its own that are known where
# this is called.
function(fuse_can_join source variable)
  set(${variable} OFF PARENT_SCOPE)
  cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${source} generated)
  if(generated OR source MATCHES "/kernels/ops/|/fmt\\.cpp$")
    return()
  endif()
  foreach(property IN ITEMS COMPILE_OPTIONS COMPILE_DEFINITIONS)
    get_source_file_property(own ${source} ${property})
    if(own)
      return()
    endif()
  endforeach()
  set(${variable} ON PARENT_SCOPE)
endfunction()

# fuse_join(LIBRARY): compiles the sources of a room several at a time.
function(fuse_join library)
  get_target_property(sources ${library} SOURCES)
  set(joined)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source)
    fuse_can_join(${source} can_join)
    if(can_join)
      list(LENGTH joined count)
      math(EXPR group "${count} / ${FUSEBOOK_JOINED_AT_ONCE}")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP joined_${group})
      list(APPEND joined ${source})
    endif()
  endforeach()
  list(LENGTH joined count)
  if(count GREATER 1)
    set_target_properties(${library} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    fuse_each_source(${library} ${joined})
  endif()
endfunction()

# fuse_each_source(TARGET SOURCE...): the sources of a target that are compiled
# together, once more by themselves.
function(fuse_each_source target)
  set(each ${target}_each)
  add_library(${each} OBJECT EXCLUDE_FROM_ALL ${ARGN})
  target_compile_features(${each} PRIVATE cxx_std_20)
  get_target_property(libraries ${target} LINK_LIBRARIES)
  target_link_libraries(${each} PRIVATE ${libraries})
  foreach(property IN ITEMS INCLUDE_DIRECTORIES COMPILE_DEFINITIONS COMPILE_OPTIONS)
    set_property(TARGET ${each} PROPERTY ${property}
                                         $<TARGET_PROPERTY:${target},${property}>)
  endforeach()
  add_dependencies(fusebook_each_source ${each})
endfunction()
