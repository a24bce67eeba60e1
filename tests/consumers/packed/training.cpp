// Steps with kernels that were compiled ahead: says where they came from, and what
// the steps gave.
//
//   training [DEVICE [FILE]]
#include <cstdio>

#include "fusebook/compile/compile.h"
#include "fusebook/device/device_registry.h"
#include "fusebook/jit/jit.h"
#include "fusebook/jit/packed_kernels.h"
#include "fusebook/optim/adam.h"

int main(int argc, char** argv) {
  if (argc > 1) fuse::set_default_device(fuse::parse_device(argv[1]));
  if (argc > 2) fuse::load_kernels(argv[2]);
  fuse::Tensor weight = fuse::full({3, 5}, 1.0);
  fuse::Tensor bias = fuse::full({5}, 0.0);
  fuse::Adam adam({weight, bias}, {.lr = 0.25, .weight_decay = 0.5});
  auto step = fuse::compile([&] { adam.step(); });
  for (int i = 1; i <= 10; ++i) {
    weight.set_grad(fuse::full({3, 5}, 0.125 * i));
    bias.set_grad(fuse::full({5}, -1.0 / i));
    step();
  }
  const fuse::JitCounters from = fuse::jit_counters();
  std::printf("kernels of steps: %lld\n",
              static_cast<long long>(step.counters().compilations));
  std::printf("compiled: %ld, from the cache: %ld, packed: %ld\n",
              from.compiler_runs, from.disk_hits, from.pack_hits);
  std::printf("weights: %a, biases: %a\n", weight.sum().item(),
              bias.sum().item());
}
