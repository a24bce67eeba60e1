#include "fusebook/cuda/gpu_module.h"

#include <fmt/core.h>

#include <algorithm>

#include "fusebook/prelude/gpu_layout.h"
#include "fusebook/support/error.h"

namespace fuse {
namespace {

constexpr const char* doing = "loading a kernel";

}  // namespace

GpuModule::GpuModule(GpuContext& context, const ModuleImage& image)
    : GpuModule(context, image.resources) {
  const CudaApi& api = context.api();
  const CurrentContext current(context);
  context.check(api.module_load_data(&module_, image.bytes.data()),
                "cuModuleLoadData", doing);
  context.check(api.module_get_function(&function_, module_, gpu_kernel_name),
                "cuModuleGetFunction", doing);
  ask_blocks();
  ask_resources();
}

void GpuModule::ask_blocks() {
  int blocks = 0;
  context_.check(
      context_.api().occupancy_blocks(&blocks, function_, gpu_block, 0),
      "cuOccupancyMaxActiveBlocksPerMultiprocessor", doing);
  const int multiprocessors =
      context_.attribute(cuda::attribute_multiprocessor_count, doing);
  resident_blocks_ = unsigned(blocks) * unsigned(std::max(1, multiprocessors));
  cooperative_ =
      context_.attribute(cuda::attribute_cooperative_launch, doing) != 0;
}

unsigned GpuModule::resident_blocks() const {
  if (resident_blocks_ > 0) return resident_blocks_;
  throw Error(fmt::format(
      "{}: the kernel needs more resources than a multiprocessor has, with "
      "blocks of {} threads; compile the step as several functions",
      context_.label(), gpu_block));
}

void GpuModule::ask_resources() {
  const auto ask = [&](int attribute, int* value) {
    context_.check(
        context_.api().func_get_attribute(value, attribute, function_),
        "cuFuncGetAttribute", doing);
  };
  ask(cuda::function_registers, &resources_.registers);
  ask(cuda::function_shared_size, &resources_.shared_bytes);
}

GpuModule::~GpuModule() {
  if (module_ == nullptr) return;
  context_.quietly([&] {
    // Some of its launches may not have started yet.
    context_.api().stream_synchronize(context_.stream());
    context_.api().module_unload(module_);
  });
}

}  // namespace fuse
