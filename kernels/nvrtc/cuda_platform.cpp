#include "fusebook/nvrtc/cuda_platform.h"

#include "fusebook/cuda/cuda_api.h"
#include "fusebook/nvrtc/nvrtc_compiler.h"

namespace fuse {

GpuPlatform& cuda_platform() {
  static auto* const platform =
      new GpuPlatform("cuda", load_cuda_driver(), make_nvrtc_compiler(),
                      GpuPlatform::Lifetime::for_ever);
  return *platform;
}

}  // namespace fuse
