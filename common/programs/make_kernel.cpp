#include "fusebook/programs/make_kernel.h"

#include <cstdio>
#include <mutex>
#include <string>

#include "fusebook/codegen/emit_kernel.h"
#include "fusebook/cpu/cpu_kernel.h"
#include "fusebook/cuda_launch/gpu_kernel.h"
#include "fusebook/device/device_registry.h"
#include "fusebook/support/error.h"

namespace fuse {
namespace {

// Says once in a process why steps run interpreted.
std::shared_ptr<Kernel> without_compiler(const Plan& plan,
                                         const std::string& why) {
  static std::once_flag said;
  std::call_once(said, [&] {
    std::fprintf(stderr, "fusebook: steps run interpreted: %s\n", why.c_str());
  });
  return make_interpreter(plan);
}

}  // namespace

std::shared_ptr<Kernel> make_kernel(const Plan& plan, Backend backend,
                                    const Device& device) {
  // The simulated GPU reaches the host's memory as if it were its own.
  const bool simulated = device.is_cpu() && backend == Backend::simulated;
  if (!device.is_cpu() || simulated) {
    const Device gpu = simulated ? Device{Device::Kind::cuda_sim, 0} : device;
    return make_gpu_kernel(generate_gpu_source(plan), gpu_of(gpu));
  }
  if (backend == Backend::interpreted) return make_interpreter(plan);
  try {
    return make_cpu_kernel(generate_cpu_source(plan));
  } catch (const NoCompiler& error) {
    return without_compiler(plan, error.what());
  }
}

}  // namespace fuse
