#pragma once

#include <memory>

#include "fusebook/cuda/gpu.h"

namespace fuse {

/// A point in the work of a device, for timing.
class GpuEvent {
 public:
  /// Throws Error.
  explicit GpuEvent(std::shared_ptr<Gpu> gpu);
  ~GpuEvent();
  GpuEvent(const GpuEvent&) = delete;
  GpuEvent& operator=(const GpuEvent&) = delete;

  /// Puts the event behind everything that was asked for so far.
  void record();
  /// True when all that came before it has run.
  bool is_over();
  /// Waits until then.
  void wait();
  /// Milliseconds the device took from `begin` to this; waits for this. Both
  /// must have been recorded.
  double milliseconds_since(GpuEvent& begin);

 private:
  std::shared_ptr<Gpu> gpu_;
  cuda::Event event_ = nullptr;
};

}  // namespace fuse
