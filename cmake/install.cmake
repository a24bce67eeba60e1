# Installs the library, its headers, and what finds them: a package for CMake, one
# for pkg-config. With BUILD_SHARED_LIBS all rooms are one shared library.
include(CMakePackageConfigHelpers)

get_property(rooms GLOBAL PROPERTY FUSEBOOK_ROOMS)
list(TRANSFORM rooms PREPEND fuse_ OUTPUT_VARIABLE libraries)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/fusebook)

if(BUILD_SHARED_LIBS)
  find_package(Threads REQUIRED)
  set(objects)
  foreach(library IN LISTS libraries)
    get_target_property(type ${library} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND objects $<TARGET_OBJECTS:${library}>)
    endif()
  endforeach()
  add_library(fusebook_shared SHARED ${objects})
  target_link_libraries(fusebook_shared PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
  target_compile_features(fusebook_shared PUBLIC cxx_std_20)
  target_include_directories(
    fusebook_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  # Only our own names are visible, not those of the libraries inside.
  set(visible ${PROJECT_SOURCE_DIR}/cmake/visible.map)
  target_link_options(fusebook_shared PRIVATE
                      -Wl,--version-script=${visible} -Wl,--no-undefined)
  set_target_properties(
    fusebook_shared
    PROPERTIES OUTPUT_NAME fusebook EXPORT_NAME fusebook LINK_DEPENDS ${visible}
               LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
               SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  install(TARGETS fusebook_shared EXPORT fusebook
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  set(pkg_libraries -lfusebook)
else()
  install(TARGETS fusebook ${libraries} EXPORT fusebook
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  set(archives)
  foreach(room IN LISTS rooms)
    get_target_property(type fuse_${room} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      list(PREPEND archives -lfusebook_${room})
    endif()
  endforeach()
  list(JOIN archives " " archives)
  set(pkg_libraries "-Wl,--start-group ${archives} -Wl,--end-group -pthread -ldl")
endif()
install(EXPORT fusebook DESTINATION ${package} NAMESPACE fusebook::
        FILE fusebook-targets.cmake)

# Headers; all but those of a room that only our own sources use.
foreach(room IN LISTS rooms)
  if(room STREQUAL "json")
    continue()
  endif()
  get_target_property(folder fuse_${room} SOURCE_DIR)
  install(DIRECTORY ${folder}/
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fusebook/${room}
          FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "*.inc")
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/common/fusebook.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fusebook)
install(FILES ${PROJECT_BINARY_DIR}/kernels/support/headers.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fusebook/support)

configure_package_config_file(
  cmake/fusebook-config.cmake.in fusebook-config.cmake
  INSTALL_DESTINATION ${package}
  NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# Until 1.0 a minor version may change everything.
write_basic_package_version_file(fusebook-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fusebook-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/fusebook-config-version.cmake
              cmake/compiler.cmake cmake/fusebook_pack.cmake
        DESTINATION ${package})

cmake_path(APPEND CMAKE_INSTALL_LIBDIR pkgconfig OUTPUT_VARIABLE pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
           BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}/${pkgconfig}
           OUTPUT_VARIABLE prefix_from_here)
configure_file(cmake/fusebook.pc.in fusebook.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fusebook.pc DESTINATION ${pkgconfig})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
