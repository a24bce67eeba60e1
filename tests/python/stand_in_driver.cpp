// A driver that tests can look into, as a library of the name of CUDA's: whoever has
// opened it finds it as libcuda.so.1. Kernels are launched and compute nothing.
#include <fmt/core.h>

#include <string>

#include "support/cuda_stand_in.h"

namespace {

testing::CudaStandIn& driver() {
  static auto* const made = new testing::CudaStandIn;
  return *made;
}

}  // namespace

using testing::CudaStandIn;
using testing::stand_in_detail::Arguments;

// NOLINTBEGIN(readability-identifier-naming): names of CUDA
// Each symbol stands for the function of the table, whatever its parameters.
#define CUDA_CALL(member, symbol, parameters)               \
  extern "C" void (*find_##symbol())() {                    \
    return reinterpret_cast<void (*)()>(                    \
        &Arguments<&CudaStandIn::member>::template call<    \
            testing::stand_in_detail::number_of_##member>); \
  }                                                         \
  extern "C" __attribute__((ifunc("find_" #symbol))) void symbol();
#include "fusebook/cuda/cuda_calls.def"
#undef CUDA_CALL

/// NVRTC looks for tables of its own in every driver that is open.
extern "C" int cuGetExportTable(const void**, const void*) {
  return fuse::cuda::not_found;
}
// NOLINTEND(readability-identifier-naming)

/// Forgets all calls; the first time it makes the driver.
extern "C" void forget_calls() { driver().calls.clear(); }

/// A line for each call: its name and its arguments as numbers.
extern "C" const char* all_calls() {
  static std::string text;
  text.clear();
  for (const CudaStandIn::Call& call : driver().calls) {
    text += call.name;
    for (const std::uint64_t each : call.arguments) {
      text += fmt::format(" {}", each);
    }
    text += "\n";
  }
  return text.c_str();
}
