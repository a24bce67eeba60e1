#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <vector>

#include "fusebook/optim_base/optimizer.h"
#include "fusebook/tensor/tensor.h"
#include "fusebook/trace/revertible.h"
#include "fusebook/trace/scalar.h"

namespace fuse {

/// Options of torch.amp.GradScaler, with its defaults.
struct GradScalerOptions {
  double init_scale = 65536;            ///< The first scale.
  double growth_factor = 2;             ///< Factor after `growth_interval`.
  double backoff_factor = 0.5;          ///< Factor after a skipped step.
  std::int64_t growth_interval = 2000;  ///< Steps without a skip until growth.
  bool enabled = true;                  ///< If false, it does nothing.
};

/// What GradScaler::state_dict returns, with torch's names.
struct GradScalerState {
  double scale = 0;                  ///< The current scale.
  double growth_factor = 0;          ///< See GradScalerOptions.
  double backoff_factor = 0;         ///< See GradScalerOptions.
  std::int64_t growth_interval = 0;  ///< See GradScalerOptions.
  std::int64_t growth_tracker = 0;   ///< Steps since the last growth or skip.

  friend bool operator==(const GradScalerState&,
                         const GradScalerState&) = default;
};

/// torch.amp.GradScaler: scales losses, so that gradients in float16 do not
/// vanish, and skips steps whose gradients are not finite:
///
///     scaler.scale(loss).backward();
///     scaler.unscale_(opt);                 // only if gradients are clipped
///     clip_grad_norm_(params, 1.0);
///     scaler.step(opt);
///     scaler.update();
///
/// The scale, how long it has not moved, and whether something was infinite are
/// numbers beside the gradients. The host asks for none of them, so all of it
/// may be part of one `compile`. Unlike torch, gradients may be float16. If their
/// parameters are updated in float32, `step` leaves such gradients as they are,
/// and divides what it converts to float32; `unscale_` stores them in float16
/// again, where small ones vanish.
class GradScaler {
 public:
  /// Throws Error unless growth_factor > 1, backoff_factor < 1 and the interval
  /// is positive.
  explicit GradScaler(GradScalerOptions options = {});

  /// The loss times the scale, differentiable, where the loss is. Waits for the
  /// device if gradients are elsewhere.
  Tensor scale(const Tensor& loss);
  /// Divides the gradients of the optimizer's parameters by the scale, and notes
  /// whether one is infinite or NaN. Throws Error if it was called since the
  /// last `update`, or after `step`.
  void unscale_(Optimizer& optimizer,
                std::source_location place = std::source_location::current());
  /// A step of the optimizer that changes nothing if a gradient is infinite or
  /// NaN; calls `unscale_` before, unless that was done. Throws Error if it was
  /// called since the last `update`, and if no parameter has a gradient.
  void step(Optimizer& optimizer,
            std::source_location place = std::source_location::current());
  /// What a step of the optimizer that looks at its gradients by itself calls
  /// instead, such as one shared by ranks: it has divided them by the scale, and
  /// changes nothing where `found_inf` is 1. Gradients are on `device`. Throws
  /// Error if `unscale_` or `step` was called since the last `update`.
  void note_step(const Optimizer& optimizer, const Scalar& found_inf,
                 const Device& device,
                 std::source_location place = std::source_location::current());
  /// After all steps of an iteration: a smaller scale if one was skipped; a
  /// larger one, if that is finite, if none was for `growth_interval` updates.
  /// Throws Error if there was neither `step` nor `unscale_` since the last one.
  void update(std::source_location place = std::source_location::current());
  /// The same with a scale of your own.
  void update(const Scalar& new_scale,
              std::source_location place = std::source_location::current());

  /// Whether a gradient of this optimizer was infinite or NaN, as 1 or 0: since
  /// the last `update`, and undefined for optimizers without `unscale_`.
  std::optional<Scalar> found_inf(const Optimizer& optimizer) const;

  /// The current scale; waits for the device. 1 if it is not enabled.
  double get_scale() const;
  /// What the scale is multiplied by after `growth_interval` good steps.
  double get_growth_factor() const { return options_.growth_factor; }
  /// What the scale is multiplied by after a skipped step.
  double get_backoff_factor() const { return options_.backoff_factor; }
  /// How many steps without a skip make the scale grow.
  std::int64_t get_growth_interval() const { return options_.growth_interval; }
  /// Another factor; it counts from the next `update`.
  void set_growth_factor(double factor) { options_.growth_factor = factor; }
  /// Another factor; it counts from the next `update`.
  void set_backoff_factor(double factor) { options_.backoff_factor = factor; }
  /// Another interval; it counts from the next `update`.
  void set_growth_interval(std::int64_t interval) {
    options_.growth_interval = interval;
  }
  /// False if it does nothing, as the options asked.
  bool is_enabled() const { return options_.enabled; }

  /// Everything needed to go on; waits for the device.
  GradScalerState state_dict() const;
  /// Goes on from there, in place. Throws Error for numbers that the constructor
  /// rejects; then nothing has changed.
  void load_state_dict(const GradScalerState& state);

 private:
  enum class Stage : std::uint8_t { unscaled, stepped };
  struct Progress {
    const Optimizer* optimizer;
    Stage stage;
    std::optional<Scalar> found_inf;
    bool scaled = false;  // the gradients are as `backward` left them
  };

  const Progress* find(const Optimizer& optimizer) const;
  void place_numbers(const Device& device);
  const Progress& look_at(Optimizer& optimizer, bool may_keep_scaled,
                          std::source_location place);
  void move_scale(const Scalar& found_inf, std::source_location place);

  GradScalerOptions options_;
  Tensor scale_;    // float32, 0-d, beside the gradients; undefined at first
  Tensor tracker_;  // float64, likewise
  double first_tracker_ = 0;
  Revertible<std::vector<Progress>> progress_;  // since the last update
};

}  // namespace fuse
