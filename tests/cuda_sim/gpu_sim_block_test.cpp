#include "fusebook/cuda_sim/gpu_sim_block.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

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

TEST_CASE("text that does not compile is an error with the compiler's words") {
  const std::string message = message_of<fuse::Error>([] {
    const SimKernel kernel("extern \"C\" __global__ void k() { nonsense; }",
                           "k");
  });
  CHECK(contains(message, "nonsense"));
}
