#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fusebook/cuda/gpu.h"

namespace fuse {

/// A captured step: its launches, replayed by one call with the addresses and
/// the scalars by value that they had when they were captured. It keeps their
/// tables and kernels, but not the tensors: whoever replays it must.
class GpuGraph {
 public:
  ~GpuGraph();
  GpuGraph(const GpuGraph&) = delete;
  GpuGraph& operator=(const GpuGraph&) = delete;

  /// Puts one replay on the stream of the device. Throws Error.
  void launch();
  /// Replays so far.
  std::int64_t launches() const { return launches_; }

 private:
  friend class GpuCapture;
  explicit GpuGraph(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}

  std::shared_ptr<Gpu> gpu_;
  std::vector<std::shared_ptr<const void>> used_;
  cuda::Graph graph_ = nullptr;
  cuda::GraphExec exec_ = nullptr;
  std::int64_t launches_ = 0;
};

/// Between construction and `finish` what is launched on a device is captured
/// instead of run. What a replay could not repeat is an Error there and then:
/// an upload, new memory, a copy to or from the host, a wait. Other threads
/// that use the device meanwhile wait for the end, so let there be nothing but
/// launches in between. Stays on one thread. Without `finish` nothing is kept.
class GpuCapture {
 public:
  /// Throws Error, also when this thread captures a step already; waits while
  /// another one uses the device.
  explicit GpuCapture(std::shared_ptr<Gpu> gpu);
  ~GpuCapture();
  GpuCapture(const GpuCapture&) = delete;
  GpuCapture& operator=(const GpuCapture&) = delete;

  /// Ends the capture and makes the graph ready. Throws Error.
  std::unique_ptr<GpuGraph> finish();

 private:
  cuda::Result end(GpuGraph& made);

  std::shared_ptr<Gpu> gpu_;
  std::optional<StreamHold> hold_;  // until the capture is over
};

}  // namespace fuse
