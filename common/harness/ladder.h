#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fusebook/tensor/tensor.h"

namespace fuse {

/// One way to make a step.
struct Rung {
  std::string name;            ///< Its time is the value `NAME_us`.
  std::vector<Tensor> params;  ///< What the step changes, with gradients.
  std::function<void()> step;  ///< Makes one step.
};

/// What a step of a rung took.
struct RungCost {
  std::int64_t launches;  ///< Of one step.
  double us;              ///< The median time of one step.
};

/// A comparison of ways to make a step, printed for a recipe: for each, the
/// launches and bytes of one step, its time, and a grid of tensors and
/// operations that shows which launch did what. Runs each step once before, so
/// that state and kernels are there. Times are medians of steps made in turns:
/// what else the machine does slows all rungs alike. Returns what each cost, in
/// the order of `rungs`.
std::vector<RungCost> print_ladder(const std::vector<Rung>& rungs);

}  // namespace fuse
