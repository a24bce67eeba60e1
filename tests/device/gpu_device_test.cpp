// The host side on a real device, where there is one: what a stand-in cannot
// show. Elsewhere the kernel is compiled at least.
#include <doctest/doctest.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "fusebook/cuda/gpu_platform.h"
#include "fusebook/cuda_launch/gpu_event.h"
#include "fusebook/cuda_launch/gpu_graph.h"
#include "fusebook/cuda_launch/gpu_kernel.h"
#include "fusebook/nvrtc/cuda_platform.h"
#include "fusebook/nvrtc/nvrtc_compile.h"
#include "fusebook/prelude/gpu_layout.h"
#include "support/jit_testing.h"
#include "support/testing.h"

using namespace testing;
using fuse::Error;
using fuse::Gpu;
using fuse::GpuBlock;
using fuse::GpuLaunch;
using fuse::NoGpu;

namespace {

std::string constant(const char* name, std::size_t value) {
  return std::string("constexpr int ") + name + " = " + std::to_string(value) +
         ";\n";
}

// Multiplies every element by the launch's scalar, and counts the chunks of
// each tensor in the tickets. Finds its way by the host's own offsets.
std::string kernel_source() {
  const std::size_t table = offsetof(GpuLaunch, table);
  return constant("launch_bytes", sizeof(GpuLaunch)) +
         constant("pointers_at", table + offsetof(fuse::Launch, pointers)) +
         constant("chunks_at", offsetof(GpuLaunch, chunks)) +
         constant("count_at", offsetof(GpuLaunch, chunk_count)) +
         constant("tickets_at", offsetof(GpuLaunch, tickets)) + R"(
struct Launch { alignas(8) char bytes[launch_bytes]; };
struct Arguments { double value[1]; };
struct Chunk {
  long long pointers, entry;
  int body, instance;
  long long begin, end, shares;
};
template <class T>
__device__ T at(const Launch& launch, int offset) {
  return *reinterpret_cast<const T*>(launch.bytes + offset);
}
extern "C" __global__ void fuse_kernel(
    const __grid_constant__ Launch launch,
    const __grid_constant__ Arguments arguments) {
  void* const* pointers = at<void* const*>(launch, pointers_at);
  const Chunk* chunks = at<const Chunk*>(launch, chunks_at);
  const long long count = at<long long>(launch, count_at);
  unsigned* tickets = at<unsigned*>(launch, tickets_at);
  for (long long c = blockIdx.x; c < count; c += gridDim.x) {
    const Chunk chunk = chunks[c];
    float* data = static_cast<float*>(pointers[chunk.pointers]);
    for (long long i = chunk.begin + threadIdx.x; i < chunk.end;
         i += blockDim.x) {
      data[i] = float(data[i] * arguments.value[0]);
    }
    if (threadIdx.x == 0) atomicAdd(&tickets[chunk.entry], 1u);
  }
}
)";
}

std::shared_ptr<Gpu> device() {
  const fuse::GpuStatus status = fuse::cuda_platform().status();
  if (status.usable()) return fuse::cuda_platform().gpu();
  MESSAGE("skipped: " << status.problem);
  return nullptr;
}

// Float tensors on the device, and a table that multiplies them.
class Tensors {
 public:
  Tensors(const std::shared_ptr<Gpu>& gpu,
          const std::vector<std::int64_t>& sizes)
      : gpu_(gpu) {
    std::vector<void*> addresses;
    for (const std::int64_t n : sizes) {
      std::vector<float> values;
      for (std::int64_t i = 0; i < n; ++i) values.push_back(float(i % 1000));
      blocks_.emplace_back(gpu, values.size() * sizeof(float));
      gpu->copy_to_device(blocks_.back().data(), values.data(),
                          values.size() * sizeof(float));
      addresses.push_back(blocks_.back().data());
    }
    list_.emplace_back("params", addresses, sizes);
    bind(2);
  }
  void bind(double scale) {
    const auto here = std::source_location::current();
    fuse::Program p;
    const auto slot = p.slot(list_[0].view(), list_[0].info());
    p.store(slot,
            p.apply(fuse::OpCode::mul,
                    std::vector<fuse::ValueId>{p.load(slot, here),
                                               p.argument(scale, {"scale"})},
                    here),
            here);
    table.bind(fuse::make_plan(p, [](const fuse::Origin&) { return false; }), p,
               1);
  }
  /// True when every element is its first value times `factor`.
  bool are_scaled_by(float factor) const {
    for (const GpuBlock& block : blocks_) {
      std::vector<float> values(block.bytes() / sizeof(float));
      gpu_->copy_to_host(values.data(), block.data(), block.bytes());
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] != float(i % 1000) * factor) return false;
      }
    }
    return true;
  }

  fuse::Table table;

 private:
  std::shared_ptr<Gpu> gpu_;
  std::deque<GpuBlock> blocks_;
  std::vector<MemoryList<float>> list_;
};

const std::vector<std::int64_t> sizes = {1,    0,     255,     256,    4095,
                                         4096, 12289, 1000000, 5000000};

}  // namespace

TEST_CASE("the kernel of this test compiles") {
  try {
    // Its table stays for ever: the leak sanitizer sees where it is kept.
    static const fuse::Nvrtc nvrtc = fuse::load_nvrtc();
    const fuse::ModuleImage image = fuse::compile_gpu_code(
        nvrtc, kernel_source(), fuse::gpu_kernel_name,
        fuse::choose_target(nvrtc, nvrtc.architectures.front()));
    CHECK(image.resources.registers > 0);
  } catch (const NoGpu& reason) {
    MESSAGE("skipped: " << reason.what());
  }
}

TEST_CASE("launches over many tensors, far ahead of the device") {
  const auto gpu = device();
  if (gpu == nullptr) return;
  const auto kernel = fuse::make_gpu_kernel(kernel_source(), gpu);
  CHECK(kernel->resources().registers > 0);
  Tensors tensors(gpu, sizes);
  // Up and down again by powers of two, exactly.
  for (int i = 0; i < 200; ++i) {
    tensors.bind(i % 2 == 0 ? 2 : 0.5);
    kernel->launch(tensors.table);
  }
  CHECK(kernel->counters().table_uploads == 1);
  CHECK(tensors.are_scaled_by(1));
  tensors.bind(4);
  kernel->launch(tensors.table);
  CHECK(tensors.are_scaled_by(4));
}

TEST_CASE("new tables in quick succession") {
  const auto gpu = device();
  if (gpu == nullptr) return;
  const auto kernel = fuse::make_gpu_kernel(kernel_source(), gpu);
  std::vector<std::unique_ptr<Tensors>> all;
  for (int i = 0; i < 40; ++i) {
    all.push_back(std::make_unique<Tensors>(
        gpu, std::vector<std::int64_t>{1000 + i, 100000, i}));
  }
  for (int round = 0; round < 3; ++round) {
    for (const auto& tensors : all) kernel->launch(tensors->table);
  }
  for (const auto& tensors : all) CHECK(tensors->are_scaled_by(8));
  CHECK(kernel->counters().table_uploads == 120);
}

TEST_CASE("a captured step, and the time between events") {
  const auto gpu = device();
  if (gpu == nullptr) return;
  const auto kernel = fuse::make_gpu_kernel(kernel_source(), gpu);
  Tensors tensors(gpu, sizes);
  kernel->launch(tensors.table);
  fuse::GpuEvent begin(gpu);
  fuse::GpuEvent end(gpu);
  std::unique_ptr<fuse::GpuGraph> graph;
  {
    fuse::GpuCapture capture(gpu);
    kernel->launch(tensors.table);
    CHECK_THROWS_AS(gpu->synchronize(), Error);
    graph = capture.finish();
  }
  CHECK(tensors.are_scaled_by(2));
  begin.record();
  for (int i = 0; i < 3; ++i) graph->launch();
  end.record();
  CHECK(end.milliseconds_since(begin) > 0);
  CHECK(tensors.are_scaled_by(16));
}

TEST_CASE("more memory than there is") {
  const auto gpu = device();
  if (gpu == nullptr) return;
  const auto whole = std::size_t(gpu->device().memory_bytes);
  const std::string message =
      message_of<Error>([&] { const GpuBlock block(gpu, 2 * whole); });
  CHECK(contains(message, "out of memory: " + std::to_string(2 * whole)));
  CHECK(contains(message, "CUDA_ERROR_OUT_OF_MEMORY"));
  const GpuBlock small(gpu, 1 << 20);
  gpu->fill_bytes(small.data(), 1, small.bytes());
  gpu->synchronize();
}

// Last: no context outlives it.
TEST_CASE("an illegal address ends the context, not the process") {
  const auto gpu = device();
  if (gpu == nullptr) return;
  const jit_testing::Env off("FUSEBOOK_CACHE_DIR", "off");
  const auto kernel = fuse::make_gpu_kernel(
      "struct Launch { alignas(8) char bytes[" +
          std::to_string(sizeof(GpuLaunch)) +
          "]; };\n"
          "struct Arguments { double value[1]; };\n"
          "extern \"C\" __global__ void fuse_kernel(\n"
          "    const __grid_constant__ Launch,\n"
          "    const __grid_constant__ Arguments arguments) {\n"
          "  *reinterpret_cast<double*>(16) = arguments.value[0];\n"
          "}\n",
      gpu);
  Tensors tensors(gpu, {100});
  const std::string message = message_of<Error>([&] {
    kernel->launch(tensors.table);
    gpu->synchronize();
  });
  CHECK(contains(message, "CUDA_ERROR_ILLEGAL_ADDRESS"));
  CHECK(contains(message, "the context of the device is lost"));
  CHECK(contains(message_of<Error>([&] { gpu->synchronize(); }),
                 "can no longer be used"));
}
