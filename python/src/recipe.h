#pragma once

#include <nanobind/nanobind.h>

namespace fuse::python {

/// Adds what a recipe tells of the machine it ran on, and of its kernels.
void define_recipe(nanobind::module_& module);

}  // namespace fuse::python
