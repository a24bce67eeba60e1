#include "fusebook/tensor/sums_of_tensors.h"

#include "fusebook/device/backend.h"
#include "fusebook/device/sum_on_host.h"

namespace fuse {
namespace {

// The dtype numbers used by sums.h.
static_assert(int(DType::float32) == 0 && int(DType::float64) == 1 &&
              int(DType::float16) == 2 && int(DType::bfloat16) == 3 &&
              int(DType::int16) == 4);

// The sums of chunks are added as one chunk.
SumWork sum_of_sums(const double* sums, i64 count, double* total) {
  return {int(DType::float64), sums, nullptr, count, count, total};
}

double total_of(SumWork work, const Device& device) {
  const i64 chunks = chunk_count(work);
  if (chunks == 0) return 0;
  const Tensor sums = empty({chunks + 1}, DType::float64, device);
  work.sums = static_cast<double*>(sums.raw_data());
  double* const total = chunks == 1 ? work.sums : work.sums + chunks;
  const SumWork rest = sum_of_sums(work.sums, chunks, total);
  DeviceBackend& backend = backend_of(device);
  backend.sum_chunks(device.index, work);
  if (chunks > 1) backend.sum_chunks(device.index, rest);
  double on_host = 0;
  backend.copy_to_host(device.index, &on_host, total, sizeof(on_host));
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
