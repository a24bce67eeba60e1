#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "optim/batch.h"
#include "optim/param_group.h"
#include "optim/state_store.h"
#include "tensor.h"

namespace fuse {

/// What every optimizer can do, whatever its options: what schedulers and
/// training loops need.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One update of all parameters that have a gradient. Groups and their
  /// parameters may have changed since the last one: what is kept for a
  /// parameter stays its own. Throws Error when a parameter is undefined or
  /// stands in the groups twice.
  void step();
  virtual std::size_t group_count() const = 0;
  /// A parameter group with its hyper-parameters. Throws Error when there is
  /// none at that index.
  virtual ParamGroup& group(std::size_t index) = 0;
  virtual const ParamGroup& group(std::size_t index) const = 0;

  /// The name of its class, such as "Adam".
  std::string name() const;
  /// How often `step` was called.
  std::int64_t steps() const { return steps_; }

  /// A state tensor, such as state(param, "exp_avg") or state(param, "step");
  /// undefined before the parameter's first step. It belongs to the parameter,
  /// in whichever group that stands.
  Tensor state(const Tensor& param, std::string_view name) const {
    return states_.state(param, name);
  }
  /// What is kept for a parameter, for checkpoints: they read it, check what a
  /// file holds for a parameter of a group, and put that in place of it.
  ParamStates states(const Tensor& param) const {
    return states_.states(param);
  }
  void check_states(const std::string& place, std::size_t group,
                    const Tensor& param, const ParamStates& states) const;
  void restore_states(const Tensor& param, const ParamStates& states) {
    states_.restore(param, states);
  }
  void restore_steps(std::int64_t steps) { steps_ = steps; }

  /// The parameters of all groups, in order.
  std::vector<Tensor> parameters() const;
  /// Removes the gradients, or sets them to zero (recorded inside `compile`).
  void zero_grad(bool set_to_none = true) const;

 protected:
  Optimizer() = default;
  Optimizer(Optimizer&&) = default;
  Optimizer& operator=(Optimizer&&) = default;

  /// What is kept for each parameter of a group; a table that lives on.
  virtual std::span<const StateSpec> specs_of(std::size_t group) const = 0;
  virtual void update_group(std::size_t group, const Batch& batch) const = 0;
  /// Throws Error for an index that no group has.
  void check_group(std::size_t index) const;
  /// Throws Error unless the groups hold parameters, each of them once.
  void check_groups() const;
  /// Throws Error unless a group could come after these.
  void check_joining(const ParamGroup& group) const;

 private:
  void refresh_batches();
  void rebuild(std::size_t group);

  std::int64_t steps_ = 0;
  StateStore states_;
  std::vector<BatchCache> batches_;  // one a group
};

}  // namespace fuse
