#include "recipe.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/codegen/emit_kernel.h"
#include "fusebook/ir/plan.h"
#include "fusebook/programs/plan_observer.h"
#include "fusebook/runtime/parallel.h"
#include "fusebook/support/machine.h"

namespace nb = nanobind;

namespace fuse::python {
namespace {

// Hashes of the kernels that were generated since they were last asked for.
struct Kernels {
  std::mutex mutex;
  std::vector<std::string> hashes;
};

Kernels& kernels() {
  static Kernels found;
  return found;
}

void remember(const Plan& plan) {
  std::string hash = gpu_part_hash(plan);
  const std::lock_guard lock(kernels().mutex);
  kernels().hashes.push_back(std::move(hash));
}

void watch_kernels() { set_plan_observer(&remember); }

std::vector<std::string> watched_kernels() {
  const std::lock_guard lock(kernels().mutex);
  return std::exchange(kernels().hashes, {});
}

}  // namespace

void define_recipe(nb::module_& module) {
  module.def("cpu_name", &cpu_name);
  module.def("system_name", &system_name);
  module.def("thread_count", &thread_count);
  module.def("set_thread_count", &set_thread_count, nb::arg("count"));
  module.def("watch_kernels", &watch_kernels);
  module.def("watched_kernels", &watched_kernels);
}

}  // namespace fuse::python
