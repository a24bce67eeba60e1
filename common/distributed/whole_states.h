#pragma once

#include <string>
#include <vector>

#include "fusebook/distributed/sharded_optimizer.h"

namespace fuse {

/// For a scope, the optimizer of a ShardedOptimizer has all parameters, whole, as
/// in one process. States are those of the shares, until others are loaded.
class WholeStates {
 public:
  explicit WholeStates(ShardedOptimizer& sharded);
  WholeStates(const WholeStates&) = delete;
  WholeStates& operator=(const WholeStates&) = delete;
  ~WholeStates();

  /// Gives the views of this rank's shares the states of the whole parameters.
  void share();

  /// Throws Error if `call` cannot be made now.
  static void check_usable(const ShardedOptimizer& sharded, const char* call,
                           std::source_location place) {
    sharded.check_usable(call, place);
  }
  /// No call can be made any more.
  static void break_off(ShardedOptimizer& sharded) {
    sharded.is_broken_ = true;
  }

 private:
  ShardedOptimizer& sharded_;
  std::vector<std::vector<Tensor>> own_;
  std::vector<std::vector<std::string>> names_;
};

}  // namespace fuse
