#include "fusebook/cuda_sim/gpu_sim.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fusebook/cuda_sim/gpu_sim_block.h"
#include "fusebook/cuda_sim/gpu_sim_device.h"
#include "fusebook/cuda_sim/gpu_sim_errors.h"
#include "fusebook/cuda_sim/gpu_sim_memory.h"
#include "fusebook/support/error.h"
#include "fusebook/support/warning.h"

namespace fuse {
namespace {

using cuda::Address;
using cuda::Result;
using cuda_sim::device_get;
using cuda_sim::device_get_attribute;
using cuda_sim::device_get_count;
using cuda_sim::device_get_name;
using cuda_sim::driver_get_version;
using cuda_sim::get_error_name;
using cuda_sim::get_error_string;
using cuda_sim::init;
using cuda_sim::occupancy_blocks;

using Operation = std::function<Result()>;
using Clock = std::chrono::steady_clock;

// The objects behind the handles of the interface.
struct SimGraph {
  std::vector<Operation> operations;
};
struct SimStream {
  std::unique_ptr<SimGraph> captured;  // set while recording instead of running
};
struct SimEvent {
  Clock::time_point time = {};
};
struct SimModule {
  std::string text;
  std::map<std::string, std::unique_ptr<SimKernel>> kernels;
};

template <class To, class From>
To as(From handle) {
  return reinterpret_cast<To>(handle);
}

SimStream* stream_of(cuda::Stream stream) { return as<SimStream*>(stream); }

Result submit(cuda::Stream stream, Operation operation) {
  SimStream* const target = stream_of(stream);
  if (target == nullptr || target->captured == nullptr) return operation();
  target->captured->operations.push_back(std::move(operation));
  return cuda::success;
}

Result copy(Address to, Address from, std::size_t bytes, cuda::Stream stream) {
  return submit(stream, [=] {
    std::memmove(reinterpret_cast<void*>(to),
                 reinterpret_cast<const void*>(from), bytes);
    return cuda::success;
  });
}

// ---- the calls -------------------------------------------------------------

Result device_total_mem(std::size_t* bytes, cuda::Device /*device*/) {
  *bytes = SimMemory::total_bytes();
  return cuda::success;
}

Result primary_ctx_retain(cuda::Context* context, cuda::Device /*device*/) {
  static char one = 0;
  *context = as<cuda::Context>(&one);
  return cuda::success;
}

Result primary_ctx_release(cuda::Device /*device*/) { return cuda::success; }
Result ctx_push(cuda::Context /*context*/) { return cuda::success; }
Result ctx_set_current(cuda::Context /*context*/) { return cuda::success; }

Result ctx_pop(cuda::Context* context) {
  return primary_ctx_retain(context, 0);
}

Result mem_get_info(std::size_t* free, std::size_t* total) {
  *free = SimMemory::free_bytes();
  *total = SimMemory::total_bytes();
  return cuda::success;
}

Result mem_alloc(Address* address, std::size_t bytes) {
  return sim_memory().allocate(address, bytes);
}

Result mem_free(Address address) { return sim_memory().release(address); }

Result mem_host_alloc(void** address, std::size_t bytes, unsigned /*flags*/) {
  *address = std::malloc(bytes);
  return *address == nullptr ? cuda::out_of_memory : cuda::success;
}

Result mem_free_host(void* address) {
  std::free(address);
  return cuda::success;
}

Result memcpy_htod_async(Address to, const void* from, std::size_t bytes,
                         cuda::Stream stream) {
  if (!sim_memory().holds(to, bytes)) return cuda::invalid_value;
  return copy(to, reinterpret_cast<Address>(from), bytes, stream);
}

Result memcpy_dtoh_async(void* to, Address from, std::size_t bytes,
                         cuda::Stream stream) {
  if (!sim_memory().holds(from, bytes)) return cuda::invalid_value;
  return copy(reinterpret_cast<Address>(to), from, bytes, stream);
}

Result memcpy_dtod_async(Address to, Address from, std::size_t bytes,
                         cuda::Stream stream) {
  const bool valid =
      sim_memory().holds(to, bytes) && sim_memory().holds(from, bytes);
  return valid ? copy(to, from, bytes, stream) : cuda::invalid_value;
}

Result memset_d8_async(Address to, unsigned char value, std::size_t bytes,
                       cuda::Stream stream) {
  if (!sim_memory().holds(to, bytes)) return cuda::invalid_value;
  return submit(stream, [=] {
    std::memset(reinterpret_cast<void*>(to), value, bytes);
    return cuda::success;
  });
}

Result stream_create(cuda::Stream* stream, unsigned /*flags*/) {
  *stream = as<cuda::Stream>(new SimStream);
  return cuda::success;
}

Result stream_destroy(cuda::Stream stream) {
  delete stream_of(stream);
  return cuda::success;
}

// A graph is recorded, not run, so there is nothing to wait for.
Result stream_synchronize(cuda::Stream stream) {
  const SimStream* const target = stream_of(stream);
  const bool captures = target != nullptr && target->captured != nullptr;
  return captures ? cuda::capture_unsupported : cuda::success;
}

Result stream_wait_event(cuda::Stream /*stream*/, cuda::Event /*event*/,
                         unsigned /*flags*/) {
  return cuda::success;
}

Result stream_begin_capture(cuda::Stream stream, int /*mode*/) {
  SimStream* const target = stream_of(stream);
  if (target == nullptr) return cuda::capture_unsupported;
  target->captured = std::make_unique<SimGraph>();
  return cuda::success;
}

Result stream_end_capture(cuda::Stream stream, cuda::Graph* graph) {
  SimStream* const target = stream_of(stream);
  if (target == nullptr || target->captured == nullptr) {
    return cuda::capture_invalidated;
  }
  *graph = as<cuda::Graph>(target->captured.release());
  return cuda::success;
}

Result stream_is_capturing(cuda::Stream stream, int* status) {
  const SimStream* const target = stream_of(stream);
  *status = target != nullptr && target->captured != nullptr ? 1 : 0;
  return cuda::success;
}

Result graph_instantiate(cuda::GraphExec* exec, cuda::Graph graph,
                         unsigned long long /*flags*/) {
  *exec = as<cuda::GraphExec>(new SimGraph(*as<SimGraph*>(graph)));
  return cuda::success;
}

Result graph_launch(cuda::GraphExec exec, cuda::Stream /*stream*/) {
  for (const Operation& operation : as<SimGraph*>(exec)->operations) {
    if (const Result code = operation(); code != cuda::success) return code;
  }
  return cuda::success;
}

Result graph_exec_destroy(cuda::GraphExec exec) {
  delete as<SimGraph*>(exec);
  return cuda::success;
}

Result graph_destroy(cuda::Graph graph) {
  delete as<SimGraph*>(graph);
  return cuda::success;
}

Result event_create(cuda::Event* event, unsigned /*flags*/) {
  *event = as<cuda::Event>(new SimEvent);
  return cuda::success;
}

Result event_destroy(cuda::Event event) {
  delete as<SimEvent*>(event);
  return cuda::success;
}

Result event_record(cuda::Event event, cuda::Stream stream) {
  return submit(stream, [=] {
    as<SimEvent*>(event)->time = Clock::now();
    return cuda::success;
  });
}

Result event_query(cuda::Event /*event*/) { return cuda::success; }
Result event_synchronize(cuda::Event /*event*/) { return cuda::success; }

Result event_elapsed_time(float* milliseconds, cuda::Event begin,
                          cuda::Event end) {
  using Milliseconds = std::chrono::duration<float, std::milli>;
  *milliseconds =
      Milliseconds(as<SimEvent*>(end)->time - as<SimEvent*>(begin)->time)
          .count();
  return cuda::success;
}

Result module_load_data(cuda::Module* module, const void* image) {
  auto* const loaded = new SimModule;
  loaded->text = static_cast<const char*>(image);
  *module = as<cuda::Module>(loaded);
  return cuda::success;
}

Result module_unload(cuda::Module module) {
  delete as<SimModule*>(module);
  return cuda::success;
}

Result module_get_function(cuda::Function* function, cuda::Module module,
                           const char* name) {
  auto* const loaded = as<SimModule*>(module);
  auto& kernel = loaded->kernels[name];
  // NoCompiler and the compiler's own messages reach the caller unchanged.
  if (kernel == nullptr) {
    kernel = std::make_unique<SimKernel>(loaded->text, name);
  }
  *function = as<cuda::Function>(kernel.get());
  return cuda::success;
}

Result func_get_attribute(int* value, int /*attribute*/,
                          cuda::Function /*function*/) {
  *value = 0;
  return cuda::success;
}

// A launch as the driver is given it.
struct SimLaunch {
  const SimKernel* kernel;
  SimSize grid;
  SimSize block;
  SimBlocks blocks;
};

Result run_kernel(const SimLaunch& launch, void* const* parameters) {
  try {
    launch.kernel->launch(launch.grid, launch.block, parameters, launch.blocks);
    return cuda::success;
  } catch (const Error& error) {
    warn(error.what());
    return cuda::launch_failed;
  }
}

// Parameters are read when the launch is submitted, as on a device.
Result submit_launch(const SimLaunch& launch, cuda::Stream stream,
                     void** parameters) {
  const std::int64_t threads = launch.block.count();
  if (launch.grid.count() <= 0 || threads <= 0 || threads > 1024) {
    return cuda::invalid_value;
  }
  std::vector<std::vector<char>> kept;
  const auto& sizes = launch.kernel->parameter_sizes();
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const char* const from = static_cast<const char*>(parameters[k]);
    kept.emplace_back(from, from + sizes[k]);
  }
  return submit(stream, [=]() mutable {
    std::vector<void*> values;
    for (auto& value : kept) values.push_back(value.data());
    return run_kernel(launch, values.data());
  });
}

// NOLINTNEXTLINE(readability-function-size): the driver's own parameters
Result launch_kernel(cuda::Function function, unsigned grid_x, unsigned grid_y,
                     unsigned grid_z, unsigned block_x, unsigned block_y,
                     unsigned block_z, unsigned /*shared_bytes*/,
                     cuda::Stream stream, void** parameters, void** /*extra*/) {
  return submit_launch({as<const SimKernel*>(function),
                        {grid_x, grid_y, grid_z},
                        {block_x, block_y, block_z},
                        SimBlocks::one_by_one},
                       stream, parameters);
}

// NOLINTNEXTLINE(readability-function-size): the driver's own parameters
Result launch_cooperative(cuda::Function function, unsigned grid_x,
                          unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z,
                          unsigned /*shared_bytes*/, cuda::Stream stream,
                          void** parameters) {
  const SimSize grid = {grid_x, grid_y, grid_z};
  const SimDevice device = sim_device();
  if (!device.cooperative_launch) return cuda::not_supported;
  if (grid.count() > device.resident_blocks()) {
    return cuda::cooperative_launch_too_large;
  }
  return submit_launch({as<const SimKernel*>(function),
                        grid,
                        {block_x, block_y, block_z},
                        SimBlocks::together},
                       stream, parameters);
}

// The image is the text itself, which the simulated driver compiles.
class SimCompiler final : public ModuleCompiler {
 public:
  ModuleImage compile(const std::string& source, int /*capability*/) override {
    return {source, {}};
  }
};

}  // namespace

GpuPlatform& sim_platform() {
  static auto* const platform = new GpuPlatform(
      "cuda-sim", {&sim_api(), {}, false}, std::make_shared<SimCompiler>());
  return *platform;
}

const CudaApi& sim_api() {
  static CudaApi api = {
  // not const: tests let its calls fail
#define CUDA_CALL(member, symbol, parameters) &member,
#include "fusebook/cuda/cuda_calls.def"
#undef CUDA_CALL
  };
  return api;
}

}  // namespace fuse
