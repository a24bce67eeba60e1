#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fusebook/cuda/gpu.h"
#include "fusebook/cuda_launch/gpu_table.h"
#include "fusebook/prelude/reductions.h"
#include "fusebook/runtime/kernel.h"

namespace fuse {

/// Counts of a GPU kernel's work so far.
struct GpuKernelCounters {
  std::int64_t launches = 0;        ///< kernels run, or captured in a graph
  std::int64_t table_uploads = 0;   ///< tables that were new on the device
  std::int64_t table_moves = 0;     ///< runs of addresses replaced in a table
  std::int64_t scalar_uploads = 0;  ///< columns, and scalars beyond 256
  std::int64_t bytes_uploaded = 0;
};

/// Generated CUDA code on one device. One launch runs all phases of a table, if
/// its blocks may wait for each other there: a cooperative launch, of no more
/// blocks than the device holds at once. Where it knows none, or refuses it, each
/// phase is a launch. The table is in device memory and uploaded when its version is
/// new there; if only addresses differ from the version there, only those are
/// uploaded. The last few tables are kept, so that callers may alternate. Scalars
/// of the launch are passed with it. Nothing waits for the device.
class GpuKernel final : public Kernel {
 public:
  GpuKernel(std::shared_ptr<Gpu> gpu, std::shared_ptr<GpuModule> module);

  /// Throws Error. During a capture (gpu_graph.h) table and scalars must be
  /// those of an earlier launch; otherwise the Error names what would have to
  /// be uploaded or has changed.
  void launch(const Table& table) override;
  /// One, or one for each phase that has something to do.
  int launches(const Table& table) const override;
  /// On the device. Throws Error during a capture if there is not enough yet.
  double* numbers(std::size_t count) override;

  const GpuKernelCounters& counters() const { return counters_; }
  const GpuResources& resources() const { return module_->resources(); }

 private:
  // Columns, preceded by the launch's scalars if there are too many to pass by
  // value.
  struct Scalars {
    GpuBlock block;
    std::vector<double> values;
  };
  struct DeviceTable {
    std::uint64_t version = 0;  // 0: contents unusable
    GpuBlock block;
    std::size_t pointers = 0;  // offset of the addresses, in bytes
    PhasedLaunch launch = {};
    std::shared_ptr<Scalars> scalars;
    std::vector<double> arguments;  // of the last launch
    bool was_launched = false;
  };

  DeviceTable& find_table(const Table& table);
  bool make_newest(std::uint64_t version, bool idle);
  std::shared_ptr<DeviceTable> take_table();
  void upload_table(const Table& table, const GpuTableLayout& layout,
                    DeviceTable& to);
  void upload_moved(const Table& table, DeviceTable& to);
  void update_scalars(const Table& table, DeviceTable& to);
  void upload_scalars(Scalars& to);
  void update_arguments(const Table& table, DeviceTable& to);
  static PhasedLaunch bound(const Table& table, const DeviceTable& to);
  bool run_together(const Table& table, DeviceTable& to, PhasedLaunch launch);
  void run_apart(const Table& table, DeviceTable& to, PhasedLaunch launch);
  cuda::Result submit(DeviceTable& table, PhasedLaunch& launch, i64 chunks,
                      bool together);
  void was_submitted(DeviceTable& table);

  std::shared_ptr<Gpu> gpu_;
  std::shared_ptr<GpuModule> module_;
  std::vector<std::shared_ptr<DeviceTable>> tables_;  // most recently used last
  std::vector<GpuBlock> numbers_;                     // the largest last
  std::vector<double> wanted_;
  bool cooperative_;
  GpuKernelCounters counters_;
};

/// Compiles `source` for the device, or finds it in a cache, and makes a kernel
/// of it. Throws like Gpu::module.
std::shared_ptr<GpuKernel> make_gpu_kernel(const std::string& source,
                                           std::shared_ptr<Gpu> gpu);

}  // namespace fuse
