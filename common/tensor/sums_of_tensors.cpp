#include "fusebook/tensor/sums_of_tensors.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "fusebook/codegen/emit_kernel.h"
#include "fusebook/device/cuda_kernel.h"
#include "fusebook/device/device_registry.h"
#include "fusebook/prelude/sums.h"
#include "fusebook/runtime/parallel_for.h"

namespace fuse {
namespace {

// The numbers that sums.h goes by.
static_assert(int(DType::float32) == 0 && int(DType::float64) == 1 &&
              int(DType::float16) == 2 && int(DType::bfloat16) == 3);

// Less work than this is not worth another thread.
constexpr i64 least_chunks = 4;

i64 chunk_count(const SumWork& work) {
  return (work.count + work.chunk - 1) / work.chunk;
}

// The sums of chunks are added as one chunk.
SumWork sum_of_sums(const double* sums, i64 count, double* total) {
  return {int(DType::float64), sums, nullptr, count, count, total};
}

// All lanes in one thread.
class SumLanes {
 public:
  static constexpr int rows = 2;

  template <class Visit>
  FUSE_FN void all(Visit visit) {
    each(sum_lanes, visit);
  }
  template <class Visit>
  FUSE_FN void each(int count, Visit visit) {
    FUSE_INDEPENDENT
    for (int lane = 0; lane < count; ++lane) visit(lane);
  }
  FUSE_FN double& own(int lane) { return parts_[std::size_t(lane)]; }
  FUSE_FN double& part(int lane) { return parts_[std::size_t(lane)]; }
  FUSE_FN void share() {}
  FUSE_FN void sync() {}

 private:
  std::array<double, sum_lanes> parts_;
};

void sum_on_host(const SumWork& work) {
  const auto sum_range = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) {
      SumLanes lanes;
      work.sums[c] = device::sum_chunk(lanes, work, c);
    }
  };
  parallel_for(chunk_count(work), least_chunks, sum_range);
}

// Compiled once for each device.
const CudaKernel& kernel_for(const Device& device) {
  static std::mutex mutex;
  static auto* const kernels =
      new std::map<std::uint8_t, std::unique_ptr<CudaKernel>>;
  const std::scoped_lock lock(mutex);
  std::unique_ptr<CudaKernel>& kernel = (*kernels)[memory_code(device)];
  if (kernel == nullptr) {
    kernel =
        std::make_unique<CudaKernel>(device, gpu_sums_source(), "sum_chunks");
  }
  return *kernel;
}

void sum_on_gpu(const CudaKernel& kernel, const SumWork& work) {
  const i64 blocks =
      std::min<i64>(chunk_count(work), i64(kernel.resident_blocks()));
  kernel.launch({unsigned(blocks), 1, 1}, {unsigned(sum_lanes), 1, 1}, work);
}

double total_of(SumWork work, const Device& device) {
  const i64 chunks = chunk_count(work);
  if (chunks == 0) return 0;
  const Tensor sums = empty({chunks + 1}, DType::float64, device);
  work.sums = static_cast<double*>(sums.raw_data());
  double* const total = chunks == 1 ? work.sums : work.sums + chunks;
  const SumWork rest = sum_of_sums(work.sums, chunks, total);
  if (device.is_cpu()) {
    sum_on_host(work);
    if (chunks > 1) sum_on_host(rest);
    return *total;
  }
  const CudaKernel& kernel = kernel_for(device);
  sum_on_gpu(kernel, work);
  if (chunks > 1) sum_on_gpu(kernel, rest);
  double on_host = 0;
  gpu_of(device)->copy_to_host(&on_host, total, sizeof(on_host));
  return on_host;
}

}  // namespace

double sum_of(const Tensor& tensor) {
  const Tensor ordered = tensor.contiguous();
  return total_of({int(tensor.dtype()), ordered.raw_data(), nullptr,
                   tensor.numel(), sum_chunk_size, nullptr},
                  tensor.device());
}

double sum_of_squared_differences(const Tensor& a, const Tensor& b) {
  const Tensor left = a.contiguous();
  const Tensor right = b.contiguous();
  return total_of({int(a.dtype()), left.raw_data(), right.raw_data(), a.numel(),
                   sum_chunk_size, nullptr},
                  a.device());
}

}  // namespace fuse
