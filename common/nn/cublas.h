#pragma once

#include <memory>
#include <string>

#include "fusebook/cuda/cuda_types.h"
#include "fusebook/device/device_registry.h"
#include "fusebook/ops/dtype.h"

namespace fuse {

using CublasHandle = struct CublasHandleBody*;

/// cuBLAS as a table of functions, from CUDA 12 or 13: the library does not
/// link against CUDA. Source: cuBLAS reference, docs.nvidia.com/cuda/cublas.
struct CublasApi {
  // cublasOperation_t and cublasStatus_t.
  static constexpr int as_it_is = 0;
  static constexpr int transposed = 1;
  static constexpr int success = 0;

#define CUBLAS_CALL(member, symbol, result, parameters) \
  result(*member) parameters = {};
#include "fusebook/nn/cublas_calls.def"
#undef CUBLAS_CALL
};

/// A matrix operand: its address on the device (for several products at once: of
/// an array there that holds the address of each matrix), the distance between columns in
/// elements, and whether it is transposed. Column-major, as in cuBLAS: a
/// row-major matrix is the transpose of what it is called here.
struct CublasMatrix {
  const void* address;
  std::int64_t leading;
  bool transposed = false;
};

/// The destination of a product, which `accumulate` adds to the old contents.
struct CublasTarget {
  void* address;
  std::int64_t leading;
  bool accumulate = false;
};

/// Sizes of a product: a is m x k, b is k x n.
struct ProductSizes {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

/// Matrix products on one device, in the order of its stream.
class Cublas {
 public:
  /// Throws Error if cuBLAS cannot be started.
  Cublas(const CublasApi& api, std::shared_ptr<Gpu> gpu);
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  /// c = a * b, in float32 or float64, or `count` such products whose matrices lie
  /// alike. Throws Error if a size exceeds the limit of cuBLAS, or if it fails.
  void multiply(DType dtype, const ProductSizes& sizes, const CublasMatrix& a,
                const CublasMatrix& b, const CublasTarget& c,
                int count = 1) const;

 private:
  void check(int code, const char* call) const;

  const CublasApi& api_;
  std::shared_ptr<Gpu> gpu_;
  CublasHandle handle_ = nullptr;
};

/// cuBLAS for a device, started on first use. nullptr on the CPU, on the
/// simulated GPU or, with one warning, if the library is missing; the caller
/// then computes on the host.
const Cublas* cublas_for(const Device& device);

/// Replaces the library by another table, also for the simulated GPU; for
/// tests. nullptr restores the library.
void set_cublas_api(const CublasApi* api);

}  // namespace fuse
