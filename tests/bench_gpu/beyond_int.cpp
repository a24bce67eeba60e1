#include "bench_gpu/beyond_int.h"

#include <algorithm>
#include <vector>

#include "bench_gpu/device_memory.h"
#include "fusebook/compile/compile.h"
#include "fusebook/optim/adam.h"
#include "fusebook/tensor/random.h"

namespace fuse::bench {
namespace {

constexpr std::int64_t whole = (std::int64_t(1) << 31) + 1003;
constexpr std::int64_t window = 1000;
constexpr int steps = 2;

// The gradient of the window that begins at `begin`; zero everywhere else.
Tensor gradient(std::int64_t begin) {
  Generator generator{std::uint64_t(begin)};
  return rand({window}, generator).cpu();
}

// What the CPU makes of a window alone: elements know nothing of each other.
Tensor expected(std::int64_t begin) {
  Tensor param = gradient(begin).clone();
  param.fill_(0);
  param.set_grad(gradient(begin));
  Adam adam({param});
  for (int i = 0; i < steps; ++i) adam.step();
  return param;
}

}  // namespace

GpuReach check_beyond_int(std::int64_t scale) {
  const std::int64_t size = std::max(whole / scale, 4 * window);
  const std::int64_t about = (std::int64_t(1) << 31) / scale;
  const std::vector<std::int64_t> begins = {
      0, std::min(about - window / 2, size - 2 * window), size - window};
  require_device_memory(size * 4 * std::int64_t(sizeof(float)));
  Tensor param = zeros({size});
  Tensor grad = zeros({size});
  for (const std::int64_t begin : begins) {
    grad.slice(0, begin, begin + window).copy_(gradient(begin));
  }
  param.set_grad(grad);
  Adam adam({param});
  auto step = compile([&] { adam.step(); });
  for (int i = 0; i < steps; ++i) step();
  GpuReach reach{size, true};
  for (const std::int64_t begin : begins) {
    const Tensor there = param.slice(0, begin, begin + window).cpu();
    reach.updated = reach.updated && bitwise_equal(there, expected(begin));
  }
  return reach;
}

}  // namespace fuse::bench
