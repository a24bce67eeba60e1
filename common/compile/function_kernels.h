#pragma once

#include "fusebook/programs/kernel_store.h"
#include "fusebook/programs/promotion.h"
#include "fusebook/programs/split_program.h"

namespace fuse {

/// What a compiled function has made for the programs that it was given. It is kept
/// out of compiled_function.h, which every program that compiles a step includes.
struct FunctionKernels {
  explicit FunctionKernels(Policy policy) : promotion(policy) {}

  KernelStore store;
  SplitStore splits;
  Promotion promotion;  ///< which numbers have become inputs
};

}  // namespace fuse
