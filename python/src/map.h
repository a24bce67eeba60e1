#pragma once

#include <nanobind/nanobind.h>

namespace fuse::python {

/// Adds foreach_map's parts to the module: Element, the operations on it, and
/// Map, a function of elements that is compiled.
void define_map(nanobind::module_& module);

}  // namespace fuse::python
