#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "fusebook/lr_scheduler/per_group.h"
#include "fusebook/lr_scheduler/scheduler.h"

namespace fuse {

/// Options of torch.optim.lr_scheduler.ReduceLROnPlateau, with its defaults.
struct ReduceLROnPlateauOptions {
  std::string mode = "min";    ///< or "max": what is an improvement
  double factor = 0.1;         ///< What the rate is multiplied by.
  std::int64_t patience = 10;  ///< epochs without improvement that are allowed
  double threshold = 1e-4;     ///< How much better counts as better.
  std::string threshold_mode = "rel";  ///< or "abs"
  std::int64_t cooldown = 0;           ///< epochs to wait after a reduction
  PerGroup<double> min_lr = 0.0;       ///< The rate is not reduced further.
  double eps = 1e-8;                   ///< smaller changes are not made
};

/// Multiplies the rate by `factor` when a metric has stopped improving.
class ReduceLROnPlateau final : public SchedulerBase {
 public:
  /// Throws Error for what torch rejects.
  explicit ReduceLROnPlateau(Optimizer& optimizer,
                             ReduceLROnPlateauOptions options = {});

  std::string name() const override { return "ReduceLROnPlateau"; }
  /// One epoch, with the value of the metric after it. NaN is no improvement.
  void step(double metrics);
  /// The best value of the metric so far.
  double best() const { return best_; }
  /// Epochs without an improvement.
  std::int64_t num_bad_epochs() const { return num_bad_epochs_; }
  /// Whether it waits after a reduction.
  bool in_cooldown() const { return cooldown_counter_ > 0; }

 protected:
  void visit_state(StateFields& fields) override;

 private:
  bool is_better(double metrics) const;
  void reduce_lr();

  ReduceLROnPlateauOptions options_;
  double best_ = std::numeric_limits<double>::infinity();
  std::int64_t cooldown_counter_ = 0;
  std::int64_t num_bad_epochs_ = 0;
};

}  // namespace fuse
