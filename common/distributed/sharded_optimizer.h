#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "fusebook/amp/grad_scaler.h"
#include "fusebook/compile/compile.h"
#include "fusebook/distributed/ranks.h"
#include "fusebook/distributed/shares.h"
#include "fusebook/optim_base/optimizer.h"

namespace fuse {

class StepRecorder;

/// What a step does with the sums of gradients before it uses them, in this
/// order; in one process it is the call beside each.
struct ShardedStep {
  /// Takes its scale out of them, changes nothing if one is infinite or NaN, and
  /// tells it: `scaler.unscale_(opt)`, and `scaler.step(opt)` at the end. Its
  /// `update` is left to the caller, on all ranks.
  GradScaler* scaler = nullptr;
  /// Divides the sums, once: `foreach_div_(grads, divide_by)`.
  std::optional<double> divide_by = {};
  /// Clips them by the norm of all: `clip_grad_norm_(params, max_norm)`.
  std::optional<double> max_norm = {};
  /// Changes nothing if one of them is infinite or NaN: `step({.skip = ...})`.
  bool skip_nonfinite = false;
};

/// What a step has found, the same on all ranks.
struct ShardedResult {
  std::optional<double> norm;  ///< before clipping, if that was asked for
  bool skipped = false;  ///< nothing was changed: a gradient is not finite
};

/// An optimizer whose step is shared by the ranks of an MPI program: each holds
/// the states of its share of the parameters, steps that, and sends the result to
/// the others. The bits of all parameters are those of one process that adds the
/// same gradients in the same order, whatever the number of ranks:
///
///     for (int m = ranks.rank(); m < count; m += ranks.size()) {
///       loss_of(micro_batch[m]).backward();
///       sharded.add_gradients();
///     }
///     sharded.step({.divide_by = count, .max_norm = 1.0});
///
/// Shares begin at chunks of 8192 elements of a tensor, if the optimizer updates
/// each element by itself; others, such as LAMB, and tensors that are not in
/// row-major order or have states in 8 bits, stay whole. All members that are not
/// const are calls that all ranks make together, outside of `compile`.
class ShardedOptimizer {
 public:
  /// Shares the parameters of `optimizer` among the ranks: its groups hold views
  /// of this rank's shares from now on. Rates, schedulers and hooks are attached
  /// to it as ever; states that it has are shared, too. Both must outlive this.
  /// Copies the parameters of rank 0 to all. `options` say how the step is
  /// compiled. Throws RanksDisagree if the optimizers differ or parameters share
  /// memory. As long as this lives, the step of `optimizer` itself throws Error; its
  /// `zero_grad` removes the gradients of whole parameters. Parameters may move
  /// (`Tensor::set_data`, `flatten_`).
  ShardedOptimizer(
      Ranks& ranks, Optimizer& optimizer, const CompileOptions& options = {},
      std::source_location place = std::source_location::current());
  ShardedOptimizer(const ShardedOptimizer&) = delete;
  ShardedOptimizer& operator=(const ShardedOptimizer&) = delete;
  ~ShardedOptimizer();

  /// Adds the gradients that the parameters hold to those of this step, and
  /// removes them. In each round of calls, gradients are added in the order of
  /// the ranks; ranks that have no more of them, the last ones, call `step`.
  /// Whoever lets several of them add up before a call gets the bits of one
  /// process that adds the same groups, and sends less.
  void add_gradients(
      std::source_location place = std::source_location::current());
  /// From now on, gradients of wider dtypes are rounded to this one, of 16 bits,
  /// before they are sent: half of the bytes of float32. The bits are those of one
  /// process that rounds each gradient so before it adds them, in the dtype they
  /// had. Without a dtype, nothing is rounded. Throws Error for a dtype of other
  /// sizes, and where gradients have been added since the last step.
  void send_gradients_as(
      std::optional<DType> dtype,
      std::source_location place = std::source_location::current());
  /// Steps all parameters for which gradients were added. Before anything is
  /// stored, each rank records what the update does now, on small tensors, which
  /// takes some microseconds for any number of parameters. Where ranks differ in
  /// that, in options or in numbers, all throw RanksDisagree, and may go on once
  /// they agree. If it fails on one rank later, it throws on all, and then only
  /// making everything anew helps: a rank that got further has stepped.
  ShardedResult step(
      const ShardedStep& options = {},
      std::source_location place = std::source_location::current());

  /// All parameters, whole, in the order of the groups they were in.
  const std::vector<Tensor>& parameters() const { return params_; }
  /// Who owns which part of them.
  const std::vector<Share>& shares() const { return shares_; }
  /// The views of this rank's shares, in the order of `shares`.
  const std::vector<Tensor>& own() const {
    follow_params();
    return own_;
  }
  /// What the launches of this rank have done that add gradients, look at them,
  /// and step.
  Counters counters() const;
  /// The optimizer of this rank's shares.
  Optimizer& optimizer() { return optimizer_; }
  const Optimizer& optimizer() const { return optimizer_; }
  /// The ranks it was made for.
  Ranks& ranks() { return ranks_; }

 private:
  friend class WholeStates;
  struct Parts;

  std::vector<std::string> facts() const;
  void take_params();
  void share_out();
  void take_first_params();
  void send_params(const RankCall& call);
  bool round(bool contributes, const RankCall& call);
  void agree_on_step(RankCall& call);
  void prepare_gradients(const ShardedStep& options, const RankCall& call,
                         ShardedResult& result);
  void check_usable(const char* call, std::source_location place) const;
  void check_params(const char* call, std::source_location place) const;
  void follow_params() const;
  RemovableHandle guard(std::source_location place);

  Ranks& ranks_;
  Optimizer& optimizer_;
  std::vector<Tensor> params_;
  std::vector<std::size_t> group_of_;            // of each parameter
  std::vector<std::vector<std::string>> names_;  // of each group
  std::vector<Share> shares_;
  std::vector<Tensor> own_;
  mutable std::uint64_t moves_seen_ = 0;  // of tensors, when `own_` was made
  std::unique_ptr<StepRecorder> recorder_;
  std::unique_ptr<Parts> parts_;
  std::optional<RemovableHandle> guard_;
  bool is_stepping_ = false;
  bool is_broken_ = false;
};

}  // namespace fuse
