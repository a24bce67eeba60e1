#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fusebook/tensor/tensor.h"

namespace fuse {

/// One rung of a comparison of ways to make a step, printed for a recipe: the
/// launches and bytes of one step, its time under the name `name`, and a grid
/// of tensors and operations that shows which launch did what. Runs `step`
/// once before, so that state and kernels are there. Returns the launches.
std::int64_t print_rung(const std::string& name,
                        const std::vector<Tensor>& params,
                        const std::function<void()>& step);

}  // namespace fuse
