#pragma once

#include <span>
#include <vector>

#include "fusebook/ir/pieces.h"
#include "fusebook/ir/plan.h"
#include "fusebook/programs/policy.h"

namespace fuse {

/// Which plain numbers of a function are inputs of its kernels because they
/// have moved, or are known to move; see Policy.
class Promotion {
 public:
  explicit Promotion(Policy policy) : policy_(policy) {}

  /// False for a number that has become an input.
  bool may_bake(const Origin& origin) const;
  /// Turns the numbers whose values differ between `known` and the program into
  /// inputs, permanently. If one is a hyper-parameter, all the others follow:
  /// schedules move several, and not all from the same call on. Does nothing
  /// unless the policy is Policy::promote.
  void promote(const Plan& known, const Program& program,
               std::span<const Piece> pieces);

 private:
  void promote(const Origin& origin);

  Policy policy_;
  bool names_ = false;          // all hyper-parameters are inputs
  std::vector<Origin> others_;  // other numbers that are inputs
};

}  // namespace fuse
