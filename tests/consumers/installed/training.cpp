// Fits y = 3x - 1 with gradients that are new tensors in every step, in one launch
// each.
#include <cmath>
#include <cstdio>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/lr_scheduler/all.h"
#include "fusebook/optim/adam.h"

namespace {

constexpr int steps = 300;

// The gradient of the mean squared error over points x = -1, -0.9, ..., 1.
struct Line {
  fuse::Tensor slope = fuse::full({}, 0.0);
  fuse::Tensor offset = fuse::full({}, 0.0);

  double backward() {
    double error = 0;
    double by_slope = 0;
    double by_offset = 0;
    for (int i = -10; i <= 10; ++i) {
      const double x = i / 10.0;
      const double off = slope.item() * x + offset.item() - (3 * x - 1);
      error += off * off / 21;
      by_slope += 2 * off * x / 21;
      by_offset += 2 * off / 21;
    }
    slope.set_grad(fuse::full({}, by_slope));
    offset.set_grad(fuse::full({}, by_offset));
    return error;
  }
};

}  // namespace

int main() {
  Line line;
  // The schedule writes into the tensor, so no rate needs a kernel of its own.
  fuse::Adam adam({line.slope, line.offset}, {.lr = fuse::tensor(0.1)});
  fuse::LinearLR schedule(adam, {.total_iters = 50});
  auto step = fuse::compile([&] {
    adam.step();
    schedule.step();
  });
  double error = 0;
  for (int i = 0; i < steps; ++i) {
    adam.zero_grad();
    error = line.backward();
    step();
  }
  const fuse::Counters counters = step.counters();
  std::printf("error after %d steps: %.2g\n", steps, error);
  std::printf("launches: %lld, compilations: %lld\n",
              static_cast<long long>(counters.launches),
              static_cast<long long>(counters.compilations));
  const bool fits = std::abs(line.slope.item() - 3) < 1e-2 &&
                    std::abs(line.offset.item() + 1) < 1e-2;
  return fits && counters.launches == steps && counters.compilations == 1 ? 0
                                                                          : 1;
}
