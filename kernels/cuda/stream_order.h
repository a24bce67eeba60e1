#pragma once

#include <mutex>

#include "fusebook/cuda/gpu_context.h"

namespace fuse {

/// Orders our stream among others of the device, without a wait of the host.
/// Thread-safe. All calls throw Error while this thread captures a step, and
/// if the other stream is being captured in a CUDA graph, which would take our
/// work into it.
class StreamOrder {
 public:
  explicit StreamOrder(GpuContext& context) : context_(context) {}
  ~StreamOrder();
  StreamOrder(const StreamOrder&) = delete;
  StreamOrder& operator=(const StreamOrder&) = delete;

  /// What we issue from now on runs after what is on `stream` by now; null is
  /// CUDA's legacy stream.
  void run_after(cuda::Stream stream);
  /// What is put on `stream` from now on runs after all that we issued so far.
  void run_before(cuda::Stream stream);

 private:
  void order(cuda::Stream first, cuda::Stream second);
  void refuse_captured(cuda::Stream theirs);

  GpuContext& context_;
  std::mutex mutex_;
  cuda::Event event_ = nullptr;
};

}  // namespace fuse
