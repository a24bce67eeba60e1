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

  /// Enqueues the event after all work issued so far.
  void record();
  /// True if all work before it has run.
  bool is_over();
  /// Waits for that.
  void wait();
  /// Milliseconds of device time from `begin` to this event; waits for this
  /// event. Both must have been recorded.
  double milliseconds_since(GpuEvent& begin);

 private:
  std::shared_ptr<Gpu> gpu_;
  cuda::Event event_ = nullptr;
};

}  // namespace fuse
