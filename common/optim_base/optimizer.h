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
#include "fusebook/optim_base/state_dict.h"
#include "fusebook/optim_base/state_store.h"
#include "fusebook/optim_base/step_options.h"
#include "fusebook/tensor/tensor.h"
#include "fusebook/trace/facts.h"
#include "fusebook/trace/undo.h"

namespace fuse {

class RecentBatches;
struct GroupToUpdate;
struct JoinedBatch;

/// Bytes, as Optimizer::memory counts them.
struct OptimizerMemory {
  std::size_t params = 0;  ///< of all groups
  std::size_t states = 0;  ///< without scales; of 8-bit states, the codes
  std::size_t scales = 0;  ///< of 8-bit states
};

/// The interface of every optimizer, independent of its options: what
/// schedulers and training loops need.
class Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One update of all parameters that have a gradient. Groups and their
  /// parameters may have changed since the last step: a parameter keeps its own
  /// state. Throws Error if a parameter is undefined or is in the groups twice,
  /// or if a gradient does not fit. Then nothing has changed: no parameter, no
  /// state, no count. In a compiled function this also holds for errors thrown
  /// at its end.
  void step(std::source_location place = std::source_location::current());
  /// The same, with gradients divided by a number, or not at all where another
  /// number says so:
  ///
  ///     opt.step({.grad_scale = scale, .skip = found_inf});
  ///
  void step(const StepOptions& options,
            std::source_location place = std::source_location::current());
  /// The same, with gradients in the caller's memory instead of those of the
  /// parameters:
  ///
  ///     opt.step({.grads = addresses});
  ///
  /// They are read in place and not kept: their memory must stay valid until
  /// the step is done; inside `compile` that is when the compiled function
  /// ends, and on a GPU when its kernel has run. New addresses at each step
  /// cost a few nanoseconds per parameter. The gradients that parameters hold
  /// do not change. Throws Error as above, if there is not exactly one address
  /// per parameter, and on a GPU if one is not aligned to the size of its
  /// elements.
  void step(const GradientAddresses& gradients,
            std::source_location place = std::source_location::current());
  void step(const GradientAddresses& gradients, const StepOptions& options,
            std::source_location place = std::source_location::current());
  /// The same after `closure`, which computes the loss and its gradients;
  /// returns what `closure` returns.
  template <std::invocable Closure>
  auto step(Closure&& closure,
            std::source_location place = std::source_location::current()) {
    check_callable(closure, "the closure");
    before_step_->call(*this);
    auto loss = std::forward<Closure>(closure)();
    make_step({}, {}, place);
    after_step_->call(*this);
    return loss;
  }

  /// Calls `hook` with this optimizer before every step, until the handle
  /// removes it.
  RemovableHandle register_step_pre_hook(StepHooks::Hook hook) {
    return {before_step_, before_step_->add(std::move(hook))};
  }
  /// The same after every step.
  RemovableHandle register_step_post_hook(StepHooks::Hook hook) {
    return {after_step_, after_step_->add(std::move(hook))};
  }
  /// Number of parameter groups.
  virtual std::size_t group_count() const = 0;
  /// A parameter group with its hyper-parameters. Throws Error if the index is
  /// out of range.
  virtual ParamGroup& group(
      std::size_t index,
      std::source_location place = std::source_location::current()) = 0;
  virtual const ParamGroup& group(
      std::size_t index,
      std::source_location place = std::source_location::current()) const = 0;

  /// Keeps parameters in bfloat16 or float16 in float32 besides, as state
  /// "master_param", so that updates too small for 16 bits add up. A step then
  /// converts gradients to float32, moves the masters, and rounds them into the
  /// parameters: all other states are float32, too, and what is written into such
  /// a parameter between two steps is overwritten by the next. Parameters of other
  /// dtypes stay as they are. Applies to the groups there are now; for one group,
  /// set its `master_weights`. Call it before the first step: later, a step throws
  /// Error if there are states in 16 bits.
  void use_master_weights(bool on = true);
  /// The same for parameters in bfloat16 at half the memory: they are the upper
  /// halves of their masters, rounded with halves away from zero, and the lower
  /// halves are kept besides, as state "low_half" in int16. Both together are the
  /// float32 in every bit (kernels/prelude/halves.h says how), also one that rounds to
  /// infinity; a NaN stays one. What is written into a parameter between two steps
  /// is its upper half from then on. For one group, set its `split_masters`, which
  /// goes before `master_weights`. A step throws Error for a parameter in float16.
  /// Masters of one kind become those of the other, in every bit, by the next step
  /// after both switches were set.
  void use_split_masters(bool on = true);
  /// Updates parameters in bfloat16 without masters: a step computes a float32 from
  /// each, and rounds it up or down by random bits, up as often as it is nearer to
  /// what is above. So updates too small for 16 bits add up on average, and nothing
  /// is kept besides. What bfloat16 holds stays as it is, infinity and NaN too; above
  /// its largest number the next is infinity. All other states are float32, or in 8
  /// bits. The bits are those of Philox (kernels/prelude/draws.h), and depend on the
  /// seed, the number of the parameter among all of this optimizer, its own count of
  /// steps, and the place of the element in it, alone: they are the same on all
  /// devices, any number of threads, and shared by ranks or not. Seed and number make
  /// the state "rounding_key", which a parameter keeps from its first step on, also in
  /// checkpoints. Applies to the groups there are now; for one group, set its
  /// `stochastic_rounding` and `rounding_seed`. Masters of either kind go before it.
  /// Call it before the first step: later, a step throws Error if there are states in
  /// 16 bits. A step throws Error for a parameter in float16. A second step in one
  /// recording is a graph break.
  /// Switched off again, like masters of either kind, it leaves states in float32, also
  /// those of parameters that are stepped for the first time beside them.
  void use_stochastic_rounding(bool on = true, std::uint32_t seed = 0);
  /// Updates parameters in bfloat16 or float16 in float32, as PyTorch's fused
  /// optimizers and torch.compile do: a step reads the parameter, its gradient and its
  /// states as float32, computes in float32, and rounds what it stores once, to
  /// nearest. Without it, as in PyTorch's foreach optimizers, the result of each
  /// operation is rounded to 16 bits. It loses fewer digits, a compiled step is faster,
  /// and nothing is kept besides; not compiled, a step has float32 temporaries. Updates
  /// too small for 16 bits are still lost: see masters and stochastic rounding, which
  /// compute in float32 anyway. Parameters of other dtypes stay as they are. Applies to
  /// the groups there are now; for one group, set its `opmath`. May be switched between
  /// two steps. Checkpoints and state dicts tell whether it was on; those that do not
  /// leave it as it is.
  void use_opmath(bool on = true);
  /// True if some group updates its 16-bit parameters in float32: it has masters of
  /// either kind, stochastic rounding or opmath switched on.
  bool updates_in_float32() const;
  /// Keeps states in 8 bits: about a byte an element instead of four. Each is
  /// coded as a root of its share of the largest of `state_block_size` neighbours
  /// (kernels/prelude/blocks.h says how well), decoded when a step reads it, and
  /// coded again from what the step makes of it, all in its one launch. A state whose
  /// spec says `nonnegative` has codes without a sign. Numbers for each parameter,
  /// masters, and what is in float64 stay as they are, and so do the states of
  /// parameters with fewer than `min_8bit_size` elements or not in row-major order.
  /// Fewer neighbours with a scale of their own follow numbers of different orders of
  /// magnitude better, and cost more scales: any power of two from 32 to 2048.
  /// Applies to the groups there are now; for one group, set its `states_8bit`,
  /// `min_8bit_size` and `state_block_size`. States that exist are converted by the
  /// next step, when this is switched on or off or another size is set, and after
  /// loading others: checkpoints and state dicts keep the size that their states
  /// have, and a step goes on in its group's. Throws Error for other sizes.
  void use_8bit_states(bool on = true, std::int64_t min_8bit_size = 4096,
                       std::int64_t state_block_size = block_size);
  /// The bytes of all parameters, and of the states that there are.
  OptimizerMemory memory() const;
  /// What is updated: the masters of parameters that have them, else the
  /// parameters, in the order of `parameters`. Averages of these are float32.
  /// Masters exist from the first step on. Split ones are joined in new tensors,
  /// which inside `compile` is a graph break.
  std::vector<Tensor> master_params() const;

  /// The name of its class, such as "Adam".
  std::string name() const;
  /// Number of calls to `step`, skipped ones included; the state "step" of a
  /// parameter counts its updates.
  std::int64_t steps() const { return kept_->steps; }

  /// A state tensor, such as state(param, "exp_avg") or state(param, "step");
  /// undefined before the parameter's first step. It belongs to the parameter,
  /// whichever group the parameter is in.
  Tensor state(const Tensor& param, std::string_view name) const {
    return kept_->states.state(param, name);
  }
  /// The states of a parameter, for checkpoints: they read them, check those
  /// found in a file for a parameter of a group, and restore them.
  ParamStates states(const Tensor& param) const {
    return kept_->states.states(param);
  }
  /// Those of them that a parameter of this group has with its options, which are what
  /// checkpoints and state dicts hold. What was switched off is not among them.
  ParamStates states_in_use(std::size_t group, const Tensor& param) const;
  void check_states(const std::string& place, std::size_t group,
                    const Tensor& param, const ParamStates& states) const;
  /// The names of the states that a parameter of this group has with its options,
  /// "step" first, whether or not they exist yet.
  std::vector<std::string> state_names(std::size_t group,
                                       const Tensor& param) const;
  /// The dtype of a state of a parameter of a group, if it is not in 8 bits: what
  /// one from elsewhere is converted to. None for a number of the parameter, which is
  /// in float64 in host memory. Throws Error, with a message starting with `place`,
  /// if there is no state with that name.
  std::optional<DType> plain_state_dtype(const std::string& place,
                                         std::size_t group, const Tensor& param,
                                         const std::string& name) const;
  void restore_states(const Tensor& param, const ParamStates& states) {
    kept_->states.restore(param, states);
  }
  /// Gives states that are not kept yet memory laid out like their parameters,
  /// as a step does.
  void prepare_states(const std::vector<Tensor>& params,
                      std::vector<ParamStates>& states) const {
    kept_->states.prepare(params, states);
  }
  /// Changes whenever a step or a load may have made, replaced or dropped a state:
  /// whoever holds tensors of states asks for them anew.
  std::uint64_t state_changes() const { return kept_->states.changes(); }
  /// Says that a tensor of a group is a part of a parameter, for what depends on the
  /// whole one.
  void set_part(const Tensor& part, PartOf of) {
    kept_->states.set_part(part, of);
  }
  /// The groups hold parts of these parameters, as ranks share them: `zero_grad`
  /// removes their gradients as well.
  void set_wholes(std::vector<Tensor> params) {
    kept_->wholes = std::move(params);
  }
  /// Whether the groups hold parts of parameters, whose gradients are elsewhere.
  bool has_parts() const { return !kept_->wholes.empty(); }
  void restore_steps(std::int64_t steps) { kept_->steps = steps; }

  /// Everything but the parameters: their states, the options of the groups and
  /// the number of steps. As in torch, the tensors are the optimizer's own and
  /// keep changing: save them, or clone those you need.
  StateDict state_dict();
  /// Restores the state of another optimizer of the same class, with groups of
  /// the same sizes. Parameters that have names on both sides are matched by
  /// name, in any order; others by position. Copies everything, tensors of the same
  /// dtype in place; a compiled step stays valid. Throws Error naming what does not
  /// fit, such as states of parameters that are in none of its groups, and inside
  /// a compiled function; then nothing has changed.
  void load_state_dict(const StateDict& all, const LoadOptions& options = {});

  /// The parameters of all groups, in order.
  std::vector<Tensor> parameters() const;
  /// The gradients that the parameters hold, in the lists that the next step
  /// takes: inside `compile`, what works on them and the step are one launch.
  /// Throws Error like `step`.
  std::vector<TensorList> gradient_lists(
      std::source_location place = std::source_location::current());
  /// Removes the gradients, or sets them to zero (which `compile` records).
  void zero_grad(
      bool set_to_none = true,
      std::source_location place = std::source_location::current()) const;

 protected:
  Optimizer();
  /// Schedulers keep referring to `other`: make them after the move.
  Optimizer(Optimizer&& other) noexcept;
  Optimizer& operator=(Optimizer&& other) noexcept;

  /// The states kept for each parameter of a group; a table that outlives it.
  virtual std::span<const StateSpec> specs_of(std::size_t group) const = 0;
  /// Updates a batch of one group, or of several that differ from it only in
  /// their numbers; `numbers` then replaces those of the group.
  virtual void update_group(std::size_t group, std::span<const Scalar> numbers,
                            const Batch& batch) const = 0;
  /// Collects all groups and the specs of their states.
  virtual void gather_groups(std::vector<GroupToUpdate>& groups);
  /// Throws Error if no group has this index.
  void check_group(std::size_t index, std::source_location place) const;
  /// Throws Error unless the groups hold parameters, each exactly once.
  void check_groups() const;
  /// Throws Error unless this group could be added.
  void check_joining(const ParamGroup& group) const;

 private:
  friend class StandIns;

  // A recording in progress may hold this longer than the optimizer lives.
  struct Kept final : Undo, FactSource {
    void undo() override;
    void keep() override { states.keep(); }
    void tell(Facts& facts) const override;
    Optimizer* owner = nullptr;  // the optimizer that recorded, while it exists
    std::int64_t steps = 0;
    StateStore states;
    std::vector<Tensor> wholes;  // if the groups hold parts of parameters
  };

  void make_step(const GradientSource& gradients, const StepOptions& options,
                 std::source_location place);
  void check_usable(const char* call, std::source_location place) const;
  void check_count(const GradientAddresses& gradients) const;
  void refresh_batches(const GradientSource& gradients);
  void update(JoinedBatch& joined, const StepOptions& options) const;
  void rehearse_batches(const StepOptions& options);
  void note_facts(std::source_location place);

  struct Keeper;  // is asked for the lists of the next step

  std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
  std::shared_ptr<const Keeper> keeper_;
  bool moved_from_ = false;
  std::shared_ptr<StepHooks> before_step_ = std::make_shared<StepHooks>();
  std::shared_ptr<StepHooks> after_step_ = std::make_shared<StepHooks>();
  std::vector<GroupToUpdate> groups_;  // as they were at the last step
  std::unique_ptr<RecentBatches> batches_;
};

}  // namespace fuse
