#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "fusebook/lr_scheduler/per_group.h"
#include "fusebook/lr_scheduler/scheduler.h"

namespace fuse {

/// Options of torch.optim.lr_scheduler.ReduceLROnPlateau, with its defaults.
struct ReduceLROnPlateauOptions {
  std::string mode = "min";    ///< or "max": which way is better
  double factor = 0.1;         ///< Factor on the rate.
  std::int64_t patience = 10;  ///< epochs to wait for an improvement
  /// The smallest change that counts as an improvement.
  double threshold = 1e-4;
  std::string threshold_mode = "rel";  ///< or "abs"
  std::int64_t cooldown = 0;           ///< epochs to wait after a reduction
  PerGroup<double> min_lr = 0.0;       ///< Lower bound of the rate.
  double eps = 1e-8;                   ///< smaller changes are skipped
};

/// Multiplies the rate by `factor` when a metric stops improving.
class ReduceLROnPlateau final : public SchedulerBase {
 public:
  /// Throws Error for anything torch rejects.
  explicit ReduceLROnPlateau(Optimizer& optimizer,
                             ReduceLROnPlateauOptions options = {});

  std::string name() const override { return "ReduceLROnPlateau"; }
  /// One epoch, given the value of the metric after it. NaN is not an
  /// improvement.
  void step(double metrics);
  /// The best value of the metric so far.
  double best() const { return best_; }
  /// Epochs without an improvement.
  std::int64_t num_bad_epochs() const { return num_bad_epochs_; }
  /// True while it waits after a reduction.
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
