#include "fusebook/device/cuda_kernel.h"

#include "fusebook/codegen/emit_kernel.h"
#include "fusebook/codegen/keep_source.h"

namespace fuse {

CudaKernel::CudaKernel(const Device& device, const std::string& text,
                       const std::string& name)
    : name_(name), gpu_(gpu_of(device)) {
  const std::string source = gpu_kernel_source(text, name);
  keep_cuda_source(source);
  module_ = gpu_->module(source);
}

void CudaKernel::launch_with(Size grid, Size block,
                             const void* const* arguments) const {
  GpuContext& context = gpu_->context();
  context.refuse_in_recording("a separate launch");
  const CurrentContext current(context);
  context.check(
      context.api().launch_kernel(
          module_->function(), grid.x, grid.y, grid.z, block.x, block.y,
          block.z, 0, context.stream(), const_cast<void**>(arguments), nullptr),
      "cuLaunchKernel", "launching the kernel " + name_);
  if (context.is_capturing()) context.keep_for_graph(module_);
}

}  // namespace fuse
