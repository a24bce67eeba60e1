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

 private:
  void refresh_batches();
  void rebuild(std::size_t group);

  std::int64_t steps_ = 0;
  StateStore states_;
  std::vector<BatchCache> batches_;  // one a group
};

/// An optimizer whose step is written once, as operations on lists.
template <class Options>
class ListOptimizer : public Optimizer {
 public:
  struct Group : ParamGroup {
    Group(std::vector<Tensor> tensors, Options wanted = {})
        : ParamGroup(std::move(tensors)), options(std::move(wanted)) {}
    std::vector<std::pair<std::string, bool>> flags() const override {
      std::vector<std::pair<std::string, bool>> all;
      options.for_each_flag(
          [&](const char* name, bool on) { all.emplace_back(name, on); });
      return all;
    }
    bool foreach () const override { return options.foreach; }
    Options options;

   protected:
    void visit_scalars(void* context,
                       void (*visit)(void*, const Named&)) override {
      options.for_each_scalar([&](const char* name, int index, Scalar& s) {
        visit(context, {name, index, &s});
      });
    }
  };

  explicit ListOptimizer(std::vector<Group> groups)
      : param_groups(std::move(groups)) {
    for (const Group& group : param_groups) group.options.validate();
    check_groups();
  }

  std::size_t group_count() const final { return param_groups.size(); }
  Group& group(std::size_t index) final {
    check_group(index);
    return param_groups[index];
  }
  const Group& group(std::size_t index) const final {
    check_group(index);
    return param_groups[index];
  }

  /// May be changed between two steps: groups, their parameters and options.
  std::vector<Group> param_groups;

 protected:
  /// What the optimizer keeps for each parameter; a table that lives on.
  virtual std::span<const StateSpec> state_specs(
      const Options& options) const = 0;
  virtual void update(const Options& options, const Batch& batch) const = 0;

 private:
  std::span<const StateSpec> specs_of(std::size_t group) const final {
    return state_specs(param_groups[group].options);
  }
  void update_group(std::size_t group, const Batch& batch) const final {
    update(param_groups[group].options, batch);
  }
};

}  // namespace fuse
