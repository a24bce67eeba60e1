// The compiled part of the Python package; fusebook/*.py is what users see.
#include <nanobind/nanobind.h>

#include "arrays.h"
#include "fusebook/reports/counters.h"
#include "fusebook/support/error.h"
#include "fusebook/support/version.h"
#include "map.h"
#include "recipe.h"
#include "stepper.h"

namespace nb = nanobind;

NB_MODULE(_core, module) {  // NOLINT
  // An optimizer may live until the interpreter ends.
  nb::set_leak_warnings(false);
  const nb::exception<fuse::Error> error(module, "Error", PyExc_ValueError);
  fuse::python::define_arrays(module);
  fuse::python::define_stepper(module);
  fuse::python::define_map(module);
  fuse::python::define_recipe(module);
  module.def("process_counters", &fuse::process_counters);
  module.attr("__version__") = fuse::version();
}
