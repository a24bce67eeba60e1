#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fusebook/optim_base/batch.h"
#include "fusebook/optim_base/gradient_source.h"
#include "fusebook/optim_base/hooks.h"
#include "fusebook/optim_base/param_group.h"
#include "fusebook/optim_base/param_names.h"
#include "fusebook/optim_base/recent_batches.h"
#include "fusebook/optim_base/state_dict.h"
#include "fusebook/optim_base/state_store.h"
#include "fusebook/tensor/tensor.h"
#include "fusebook/trace/facts.h"
#include "fusebook/trace/undo.h"

namespace fuse {

/// What every optimizer can do, whatever its options: what schedulers and
/// training loops need.
class Optimizer {
 public:
  virtual ~Optimizer() { kept_->owner = nullptr; }
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One update of all parameters that have a gradient. Groups and their
  /// parameters may have changed since the last one: what is kept for a
  /// parameter stays its own. Throws Error when a parameter is undefined or
  /// stands in the groups twice, and for gradients that do not fit. Nothing has
  /// changed then: no parameter, no state, no count. Of a compiled function that
  /// holds also for what throws at its end.
  void step(std::source_location place = std::source_location::current());
  /// The same with gradients that are not those of the parameters, for callers
  /// whose memory they are:
  ///
  ///     opt.step({.grads = addresses});
  ///
  /// They are read where they are and not kept: their memory must be there
  /// until the step is done, which inside `compile` is when the compiled
  /// function ends, and on a GPU when its kernel has run. That they lie
  /// elsewhere each time costs a few nanoseconds a parameter. The gradients that
  /// parameters hold stay as they are. Throws Error as above, and when there is
  /// not one address a parameter, or on a GPU when one is not aligned to its
  /// elements.
  void step(const GradientAddresses& gradients,
            std::source_location place = std::source_location::current());
  /// The same after `closure`, which computes the loss and its gradients;
  /// returns what that returns.
  template <std::invocable Closure>
  auto step(Closure&& closure,
            std::source_location place = std::source_location::current()) {
    check_callable(closure, "the closure");
    before_step_->call(*this);
    auto loss = std::forward<Closure>(closure)();
    make_step({}, place);
    after_step_->call(*this);
    return loss;
  }

  /// Calls `hook` with this optimizer before or after every step, until the
  /// handle removes it.
  RemovableHandle register_step_pre_hook(StepHooks::Hook hook) {
    return {before_step_, before_step_->add(std::move(hook))};
  }
  /// The same after every step.
  RemovableHandle register_step_post_hook(StepHooks::Hook hook) {
    return {after_step_, after_step_->add(std::move(hook))};
  }
  /// How many parameter groups there are.
  virtual std::size_t group_count() const = 0;
  /// A parameter group with its hyper-parameters. Throws Error when there is
  /// none at that index.
  virtual ParamGroup& group(std::size_t index) = 0;
  virtual const ParamGroup& group(std::size_t index) const = 0;

  /// The name of its class, such as "Adam".
  std::string name() const;
  /// How often `step` was called.
  std::int64_t steps() const { return kept_->steps; }

  /// A state tensor, such as state(param, "exp_avg") or state(param, "step");
  /// undefined before the parameter's first step. It belongs to the parameter,
  /// in whichever group that stands.
  Tensor state(const Tensor& param, std::string_view name) const {
    return kept_->states.state(param, name);
  }
  /// What is kept for a parameter, for checkpoints: they read it, check what a
  /// file holds for a parameter of a group, and put that in place of it.
  ParamStates states(const Tensor& param) const {
    return kept_->states.states(param);
  }
  void check_states(const std::string& place, std::size_t group,
                    const Tensor& param, const ParamStates& states) const;
  void restore_states(const Tensor& param, const ParamStates& states) {
    kept_->states.restore(param, states);
  }
  /// Gives states that are not kept yet memory like that of their parameters,
  /// as a step makes it.
  void prepare_states(const std::vector<Tensor>& params,
                      std::vector<ParamStates>& states) const {
    kept_->states.prepare(params, states);
  }
  void restore_steps(std::int64_t steps) { kept_->steps = steps; }

  /// Everything but the parameters: what is kept for them, the options of the
  /// groups and how many steps were made. As in torch, the tensors are the
  /// optimizer's own and go on changing: save them, or clone what must stay.
  StateDict state_dict();
  /// Goes on as the optimizer did from which that came, one of the same class
  /// with groups of the same sizes; parameters that have names on both sides
  /// are known by them, in any order, others by their order. Copies all: tensors in place, so
  /// that a compiled step stays as it is. Throws Error that names what does not
  /// fit, and inside a compiled function; then nothing has changed.
  void load_state_dict(const StateDict& all, const LoadOptions& options = {});

  /// The parameters of all groups, in order.
  std::vector<Tensor> parameters() const;
  /// Removes the gradients, or sets them to zero (recorded inside `compile`).
  void zero_grad(
      bool set_to_none = true,
      std::source_location place = std::source_location::current()) const;

 protected:
  Optimizer() = default;
  /// Schedulers go on referring to `other`: make them after the move.
  Optimizer(Optimizer&& other) noexcept;
  Optimizer& operator=(Optimizer&& other) noexcept;

  /// What is kept for each parameter of a group; a table that lives on.
  virtual std::span<const StateSpec> specs_of(std::size_t group) const = 0;
  /// Updates a batch of one group, or of several that are like this one but for
  /// their numbers, which then are these.
  virtual void update_group(std::size_t group, std::span<const Scalar> numbers,
                            const Batch& batch) const = 0;
  /// All groups and what is kept for their parameters.
  virtual void gather_groups(std::vector<GroupToUpdate>& groups);
  /// Throws Error for an index that no group has.
  void check_group(std::size_t index) const;
  /// Throws Error unless the groups hold parameters, each of them once.
  void check_groups() const;
  /// Throws Error unless a group could come after these.
  void check_joining(const ParamGroup& group) const;

 private:
  // A recording in progress may hold it longer than the optimizer lives.
  struct Kept final : Undo, FactSource {
    void undo() override;
    void keep() override { states.keep(); }
    void tell(Facts& facts) const override;
    Optimizer* owner = nullptr;  // since it was recorded, if it is still there
    std::int64_t steps = 0;
    StateStore states;
  };

  void make_step(const GradientSource& gradients, std::source_location place);
  void check_count(const GradientAddresses& gradients) const;
  void refresh_batches(const GradientSource& gradients);
  void update(JoinedBatch& joined) const;
  void rehearse_batches();
  void note_facts(std::source_location place);

  std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
  bool moved_from_ = false;
  std::shared_ptr<StepHooks> before_step_ = std::make_shared<StepHooks>();
  std::shared_ptr<StepHooks> after_step_ = std::make_shared<StepHooks>();
  std::vector<GroupToUpdate> groups_;  // as they were at the last step
  RecentBatches batches_;
};

}  // namespace fuse
