# The Python package in this build, for recipes in Python and for its tests: the target
# fusebook_python, if its packages are in build/python/module; a build after they were
# installed finds them. FUSEBOOK_PYTHON_LACKS says what is missing. No sanitizer:
# Python itself is without.
set(environment ${PROJECT_SOURCE_DIR}/build/python/module)
set(FUSEBOOK_PYTHON_LACKS "")
file(GLOB ready CONFIGURE_DEPENDS ${environment}/ready)
if(FUSEBOOK_SANITIZE)
  set(FUSEBOOK_PYTHON_LACKS "a build without a sanitizer")
elseif(NOT ready)
  set(FUSEBOOK_PYTHON_LACKS "its Python packages: ./fusebook run installs them")
elseif(NOT TARGET fusebook_python)
  set(Python_EXECUTABLE ${environment}/bin/python)
  find_package(Python 3.11 COMPONENTS Interpreter Development.Module QUIET)
  if(Python_Development.Module_FOUND)
    add_subdirectory(${PROJECT_SOURCE_DIR}/python ${PROJECT_BINARY_DIR}/python)
  else()
    set(FUSEBOOK_PYTHON_LACKS python3-dev)
  endif()
endif()
