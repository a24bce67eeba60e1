#include "fusebook/programs/make_kernel.h"

#include "fusebook/device/backend.h"

namespace fuse {

std::shared_ptr<Kernel> make_kernel(const Plan& plan, Backend backend,
                                    const Device& device) {
  // The simulated GPU accesses host memory as its own.
  const bool simulated =
      backend == Backend::simulated && backend_of(device).is_host();
  const Device where = simulated ? Device{Device::Kind::cuda_sim, 0} : device;
  DeviceBackend& own = backend_of(where);
  return backend == Backend::interpreted
             ? own.make_quick_kernel(where.index, plan)
             : own.make_kernel(where.index, plan);
}

}  // namespace fuse
