#include "fusebook/device/gpu_backend.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "fusebook/codegen/emit_kernel.h"
#include "fusebook/cuda/gpu_platform.h"
#include "fusebook/cuda/gpu_status.h"
#include "fusebook/cuda_launch/gpu_kernel.h"
#include "fusebook/cuda_sim/gpu_sim.h"
#include "fusebook/device/allocator.h"
#include "fusebook/device/cuda_kernel.h"
#include "fusebook/device/sum_on_host.h"
#include "fusebook/nvrtc/cuda_platform.h"
#include "fusebook/support/machine.h"

namespace fuse {
namespace {

/// The devices of a platform, real or simulated.
class GpuBackend : public DeviceBackend {
 public:
  explicit GpuBackend(Device::Kind kind) : kind_(kind) {}

  virtual std::shared_ptr<Gpu> gpu(int index) const = 0;

  void require(int index) const override { gpu(index)->check_compiler(); }

  std::shared_ptr<Storage> allocate(int index, std::size_t bytes) override {
    auto block = std::make_shared<GpuBlock>(gpu(index), bytes);
    auto storage = std::make_shared<Storage>(block->data(), bytes, false);
    storage->block = std::move(block);
    return storage;
  }
  void copy_to_device(int index, void* to, const void* from,
                      std::size_t bytes) override {
    gpu(index)->copy_to_device(to, from, bytes);
  }
  void copy_to_host(int index, void* to, const void* from,
                    std::size_t bytes) override {
    gpu(index)->copy_to_host(to, from, bytes);
  }
  void copy_within(int index, void* to, const void* from,
                   std::size_t bytes) override {
    gpu(index)->copy_on_device(to, from, bytes);
  }
  void fill_bytes(int index, void* to, unsigned char value,
                  std::size_t bytes) override {
    gpu(index)->fill_bytes(to, value, bytes);
  }
  void synchronize(int index) override { gpu(index)->synchronize(); }

  Target target() const override { return Target::gpu; }
  std::shared_ptr<Kernel> make_kernel(int index, const Plan& plan) override {
    return make_gpu_kernel(generate_gpu_source(plan), gpu(index));
  }
  void sum_chunks(int index, const SumWork& work) override {
    run(kernel(index, gpu_sums_source, "sum_chunks"), chunk_count(work), work);
  }
  int average_matrices(int index, const MatrixWork& work) override {
    const auto run_all = [&](const char* name, i64 parts) {
      if (parts == 0) return 0;
      run(kernel(index, gpu_matrix_means_source, name), parts, work);
      return 1;
    };
    return run_all("average_bands", work.bands) +
           run_all("join_columns", work.blocks);
  }

 private:
  // A block of threads for each part, as many at a time as there is room for.
  template <class Work>
  static void run(const CudaKernel& kernel, i64 parts, const Work& work) {
    const i64 blocks = std::min<i64>(parts, i64(kernel.resident_blocks()));
    kernel.launch({unsigned(blocks), 1, 1}, {unsigned(sum_lanes), 1, 1}, work);
  }

  // Compiled once per device.
  const CudaKernel& kernel(int index, std::string (*source)(),
                           const char* name) {
    const std::scoped_lock lock(mutex_);
    std::unique_ptr<CudaKernel>& kernel = kernels_[{index, name}];
    if (kernel == nullptr) {
      kernel =
          std::make_unique<CudaKernel>(Device{kind_, index}, source(), name);
    }
    return *kernel;
  }

  Device::Kind kind_;
  std::mutex mutex_;
  std::map<std::pair<int, std::string>, std::unique_ptr<CudaKernel>> kernels_;
};

class CudaBackend final : public GpuBackend {
 public:
  CudaBackend() : GpuBackend(Device::Kind::cuda) {}

  std::string name() const override { return "cuda"; }
  bool is_numbered() const override { return true; }
  std::string model(int index) const override {
    return gpu(index)->device().name + ", CUDA " +
           cuda_version_text(cuda_platform().status().driver_version);
  }
  void run_after(int index, void* stream) override {
    gpu(index)->order().run_after(static_cast<cuda::Stream>(stream));
  }
  void run_before(int index, void* stream) override {
    gpu(index)->order().run_before(static_cast<cuda::Stream>(stream));
  }
  std::string architecture(int index) const override {
    return "sm_" + std::to_string(gpu(index)->device().capability);
  }
  std::shared_ptr<Gpu> gpu(int index) const override {
    return cuda_platform().gpu(index);
  }
};

class SimulatorBackend final : public GpuBackend {
 public:
  SimulatorBackend() : GpuBackend(Device::Kind::cuda_sim) {}

  std::string name() const override { return "cuda-sim"; }
  std::string model(int) const override {
    return "CUDA simulator on " + cpu_name();
  }
  std::shared_ptr<Gpu> gpu(int) const override { return sim_platform().gpu(0); }
};

}  // namespace

std::unique_ptr<DeviceBackend> make_cuda_backend() {
  return std::make_unique<CudaBackend>();
}

std::unique_ptr<DeviceBackend> make_simulator_backend() {
  return std::make_unique<SimulatorBackend>();
}

std::shared_ptr<Gpu> find_gpu(const Device& device) {
  const auto* const backend =
      dynamic_cast<const GpuBackend*>(&backend_of(device));
  return backend == nullptr ? nullptr : backend->gpu(device.index);
}

}  // namespace fuse
