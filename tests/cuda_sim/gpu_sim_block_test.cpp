#include "fusebook/cuda_sim/gpu_sim_block.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "fusebook/cuda_sim/gpu_sim.h"
#include "fusebook/cuda_sim/gpu_sim_device.h"
#include "fusebook/support/error.h"
#include "support/step_testing.h"

using namespace testing;
using fuse::SimKernel;
using fuse::SimOrder;

namespace {

// Every order that a correct kernel must not be able to see.
template <class Body>
void in_every_order(Body body) {
  fuse::set_sim_order(SimOrder::ascending);
  body();
  fuse::set_sim_order(SimOrder::descending);
  body();
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    fuse::set_sim_order(SimOrder::shuffled, seed);
    body();
  }
  fuse::set_sim_order(SimOrder::ascending);
}

}  // namespace

TEST_CASE("every thread of every block runs once, with its indices") {
  const SimKernel kernel(
      "extern \"C\" __global__ void mark(int* out, int factor) {\n"
      "  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y +\n"
      "      blockDim.y * threadIdx.z);\n"
      "  const unsigned block = blockIdx.x + gridDim.x * blockIdx.y;\n"
      "  out[block * blockDim.x * blockDim.y * blockDim.z + thread] +=\n"
      "      int(thread + 1000 * block) * factor;\n"
      "}\n",
      "mark");
  CHECK(kernel.parameter_sizes() ==
        std::vector<std::size_t>{sizeof(int*), sizeof(int)});
  in_every_order([&] {
    std::vector<int> out(std::size_t(2 * 3 * 4 * 5 * 2), 0);
    int* address = out.data();
    int factor = 3;
    void* parameters[] = {static_cast<void*>(&address),
                          static_cast<void*>(&factor)};
    kernel.launch({2, 3, 1}, {4, 5, 2}, parameters);
    for (int i = 0; i < int(out.size()); ++i) {
      REQUIRE(out[std::size_t(i)] == (i % 40 + 1000 * (i / 40)) * 3);
    }
  });
}

TEST_CASE("a barrier is passed when all threads of the block are there") {
  // A sum by halves: each round reads what others wrote in the one before.
  const SimKernel kernel(
      "extern \"C\" __global__ void sum(const float* in, float* out) {\n"
      "  __shared__ float part[64];\n"
      "  part[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];\n"
      "  __syncthreads();\n"
      "  for (unsigned half = 32; half > 0; half /= 2) {\n"
      "    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + "
      "half];\n"
      "    __syncthreads();\n"
      "  }\n"
      "  if (threadIdx.x == 0) out[blockIdx.x] = sqrtf(part[0]);\n"
      "}\n",
      "sum");
  std::vector<float> in(3 * 64);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = float(i % 17);
  in_every_order([&] {
    std::vector<float> out(3, -1);
    const float* from = in.data();
    float* to = out.data();
    void* parameters[] = {static_cast<void*>(&from), static_cast<void*>(&to)};
    kernel.launch({3, 1, 1}, {64, 1, 1}, parameters);
    for (std::size_t b = 0; b < 3; ++b) {
      float expected = 0;
      for (std::size_t i = 0; i < 64; ++i) expected += in[b * 64 + i];
      CHECK(out[b] == std::sqrt(expected));
    }
  });
}

TEST_CASE("a block that ends last sees what all others counted") {
  const SimKernel kernel(
      "extern \"C\" __global__ void last(unsigned* ticket, int* who) {\n"
      "  if (threadIdx.x != 0) return;\n"
      "  __threadfence();\n"
      "  if (atomicAdd(ticket, 1u) + 1 == gridDim.x) *who = int(blockIdx.x);\n"
      "}\n",
      "last");
  const auto last_block = [&] {
    unsigned ticket = 0;
    int who = -1;
    unsigned* at = &ticket;
    int* to = &who;
    void* parameters[] = {static_cast<void*>(&at), static_cast<void*>(&to)};
    kernel.launch({7, 1, 1}, {32, 1, 1}, parameters);
    CHECK(ticket == 7);
    return who;
  };
  CHECK(last_block() == 6);
  fuse::set_sim_order(SimOrder::descending);
  CHECK(last_block() == 0);
  fuse::set_sim_order(SimOrder::ascending);
}

TEST_CASE("threads that leave a barrier out are an error, not a hang") {
  const SimKernel kernel(
      "extern \"C\" __global__ void some(int* out) {\n"
      "  if (threadIdx.x < 3) __syncthreads();\n"
      "  out[threadIdx.x] = 1;\n"
      "}\n",
      "some");
  std::vector<int> out(8, 0);
  int* to = out.data();
  void* parameters[] = {static_cast<void*>(&to)};
  const std::string message = message_of<fuse::Error>(
      [&] { kernel.launch({2, 1, 1}, {8, 1, 1}, parameters); });
  CHECK(contains(message, "'some'"));
  CHECK(contains(message, "block 0"));
  CHECK(contains(message, "__syncthreads()"));
}

namespace {

// A barrier of all blocks that can be passed once: each counts itself and sleeps
// until all are there. Then each reads what its neighbour has stored, and what it
// has put aside before.
constexpr const char* neighbours =
    "extern \"C\" __global__ void meet(volatile unsigned* there, int* out,\n"
    "                                 int* sums) {\n"
    "  __shared__ int own[4];\n"
    "  const int block = int(blockIdx.x);\n"
    "  own[threadIdx.x] = 10 * block + int(threadIdx.x);\n"
    "  if (threadIdx.x == 0) out[block] = 100 + block;\n"
    "  __syncthreads();\n"
    "  if (threadIdx.x == 0) {\n"
    "    __threadfence();\n"
    "    atomicAdd((unsigned*)there, 1u);\n"
    "    while (*there < gridDim.x) __nanosleep(20);\n"
    "  }\n"
    "  __syncthreads();\n"
    "  const int next = int((blockIdx.x + 1) % gridDim.x);\n"
    "  sums[block * 4 + int(threadIdx.x)] =\n"
    "      out[next] + own[3 - threadIdx.x];\n"
    "}\n";

void meet(unsigned blocks, fuse::SimBlocks alive) {
  static const SimKernel kernel(neighbours, "meet");
  unsigned there = 0;
  std::vector<int> out(blocks, -1);
  std::vector<int> sums(std::size_t(blocks) * 4, -1);
  unsigned* count = &there;
  int* to = out.data();
  int* last = sums.data();
  void* parameters[] = {static_cast<void*>(&count), static_cast<void*>(&to),
                        static_cast<void*>(&last)};
  kernel.launch({blocks, 1, 1}, {4, 1, 1}, parameters, alive);
  CHECK(there == blocks);
  for (int b = 0; b < int(blocks); ++b) {
    for (int t = 0; t < 4; ++t) {
      REQUIRE(sums[std::size_t(b * 4 + t)] ==
              100 + (b + 1) % int(blocks) + 10 * b + 3 - t);
    }
  }
}

}  // namespace

TEST_CASE("blocks that are alive together wait for each other") {
  in_every_order([] {
    for (const unsigned blocks : {1U, 2U, 5U, 40U}) {
      meet(blocks, fuse::SimBlocks::together);
    }
  });
}

TEST_CASE("a block that waits for one not alive is an error, not a hang") {
  meet(1, fuse::SimBlocks::one_by_one);
  const std::string message =
      message_of<fuse::Error>([] { meet(2, fuse::SimBlocks::one_by_one); });
  CHECK(contains(message, "'meet'"));
  CHECK(contains(message, "block 0 waits for what no block does"));
  CHECK(contains(message, "launch it cooperatively"));
}

TEST_CASE("a block that never comes is told of where all are alive") {
  const SimKernel kernel(
      "extern \"C\" __global__ void but_one(volatile unsigned* there) {\n"
      "  if (blockIdx.x == 1) return;\n"
      "  atomicAdd((unsigned*)there, 1u);\n"
      "  while (*there < gridDim.x) __nanosleep(20);\n"
      "}\n",
      "but_one");
  unsigned there = 0;
  unsigned* at = &there;
  void* parameters[] = {static_cast<void*>(&at)};
  const std::string message = message_of<fuse::Error>([&] {
    kernel.launch({3, 1, 1}, {1, 1, 1}, parameters, fuse::SimBlocks::together);
  });
  CHECK(contains(message, "'but_one'"));
  CHECK(contains(message, "every block must come to where the others wait"));
}

TEST_CASE("what a block shares holds nothing of the one before") {
  const SimKernel kernel(
      "extern \"C\" __global__ void reads(double* out) {\n"
      "  __shared__ double shared;\n"
      "  out[blockIdx.x] = shared;\n"
      "  shared = 1;\n"
      "}\n",
      "reads");
  std::vector<double> out(3, 0);
  double* to = out.data();
  void* parameters[] = {static_cast<void*>(&to)};
  kernel.launch({3, 1, 1}, {1, 1, 1}, parameters);
  for (const double value : out) CHECK(std::isnan(value));
}

TEST_CASE("the device holds no more blocks than it says") {
  const fuse::CudaApi& api = fuse::sim_api();
  fuse::cuda::Module module = nullptr;
  fuse::cuda::Function function = nullptr;
  REQUIRE(api.module_load_data(&module, neighbours) == 0);
  REQUIRE(api.module_get_function(&function, module, "meet") == 0);
  const auto launch = [&](unsigned blocks) {
    std::vector<int> out(std::size_t(blocks) * 5);
    unsigned there = 0;
    unsigned* count = &there;
    int* to = out.data();
    int* last = out.data() + blocks;
    void* parameters[] = {static_cast<void*>(&count), static_cast<void*>(&to),
                          static_cast<void*>(&last)};
    return api.launch_cooperative(function, blocks, 1, 1, 4, 1, 1, 0, nullptr,
                                  parameters);
  };
  int multiprocessors = 0;
  int blocks_each = 0;
  api.device_get_attribute(&multiprocessors,
                           fuse::cuda::attribute_multiprocessor_count, 0);
  api.occupancy_blocks(&blocks_each, function, 4, 0);
  const auto most = unsigned(multiprocessors * blocks_each);
  CHECK(launch(most) == fuse::cuda::success);
  CHECK(launch(most + 1) == fuse::cuda::cooperative_launch_too_large);
  CHECK(launch(0) == fuse::cuda::invalid_value);
  fuse::set_sim_device({.multiprocessors = 5, .blocks_each = 3});
  CHECK(launch(15) == fuse::cuda::success);
  CHECK(launch(16) == fuse::cuda::cooperative_launch_too_large);
  fuse::set_sim_device({.cooperative_launch = false});
  CHECK(launch(1) == fuse::cuda::not_supported);
  int cooperative = -1;
  api.device_get_attribute(&cooperative,
                           fuse::cuda::attribute_cooperative_launch, 0);
  CHECK(cooperative == 0);
  fuse::set_sim_device({});
  api.device_get_attribute(&cooperative,
                           fuse::cuda::attribute_cooperative_launch, 0);
  CHECK(cooperative == 1);
  api.module_unload(module);
}

TEST_CASE("text that does not compile is an error with the compiler's words") {
  const std::string message = message_of<fuse::Error>([] {
    const SimKernel kernel("extern \"C\" __global__ void k() { nonsense; }",
                           "k");
  });
  CHECK(contains(message, "nonsense"));
}
