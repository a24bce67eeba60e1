#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fusebook/cuda/gpu.h"

namespace fuse {

/// A captured step: its launches, replayed by one call with the addresses and
/// by-value scalars from the capture. It keeps its tables and kernels alive,
/// but not the tensors: the caller must.
class GpuGraph {
 public:
  ~GpuGraph();
  GpuGraph(const GpuGraph&) = delete;
  GpuGraph& operator=(const GpuGraph&) = delete;

  /// Enqueues a replay on the stream of the device. Throws Error.
  void launch();
  /// Number of replays so far.
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

/// Launches on a device between construction and `finish` are captured instead
/// of run. Anything a replay could not repeat throws Error immediately: an
/// upload, new memory, a copy to or from the host, a wait. Other threads that
/// use the device wait until the end, so do nothing but launch in between. Must
/// stay on one thread. Without `finish` nothing is kept.
class GpuCapture {
 public:
  /// Throws Error, also if this thread is already capturing a step; waits while
  /// another thread uses the device.
  explicit GpuCapture(std::shared_ptr<Gpu> gpu);
  ~GpuCapture();
  GpuCapture(const GpuCapture&) = delete;
  GpuCapture& operator=(const GpuCapture&) = delete;

  /// Ends the capture and instantiates the graph. Throws Error.
  std::unique_ptr<GpuGraph> finish();

 private:
  cuda::Result end(GpuGraph& made);

  std::shared_ptr<Gpu> gpu_;
  std::optional<StreamHold> hold_;  // until the capture ends
};

}  // namespace fuse
