#include "fusebook/nn/cublas.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "fusebook/cuda/cuda_api.h"
#include "fusebook/nvrtc/nvrtc_api.h"
#include "fusebook/nvrtc/toolkit_folders.h"
#include "fusebook/support/dynamic_library.h"
#include "fusebook/support/error.h"
#include "fusebook/support/warning.h"

namespace fuse {
namespace {

const CublasApi* fill_table(const std::string& name) {
  CallLibrary library(name);
  if (!library.is_open()) return nullptr;
  auto api = std::make_unique<CublasApi>();
#define CUBLAS_CALL(member, symbol, result, parameters) \
  library.fill(#symbol, &api->member);
#include "fusebook/nn/cublas_calls.def"
#undef CUBLAS_CALL
  return library.missing().empty() ? api.release() : nullptr;
}

// A driver runs code made for its own CUDA version and for older ones.
int newest_cuda() {
  constexpr int newest = 13;
  const CudaDriver driver = load_cuda_driver();
  int version = 0;
  const bool known = driver.api != nullptr &&
                     driver.api->driver_get_version(&version) == cuda::success;
  return known ? std::min(version / 1000, newest) : newest;
}

const CublasApi* load_cublas() {
  for (int major = newest_cuda(); major >= 12; --major) {
    const std::string file = fmt::format("libcublas.so.{}", major);
    if (const CublasApi* const api = fill_table(file)) return api;
    for (const std::string& folder : cuda_library_folders(nvrtc_folders)) {
      if (const auto* const api = fill_table(folder + "/" + file)) return api;
    }
  }
  warn_once(
      "cuBLAS was not found, so linear layers are computed on the host; "
      "install the CUDA Toolkit, or set CUDA_HOME to its location");
  return nullptr;
}

// One handle for each device in use; handles, like devices, are never
// destroyed.
class Handles {
 public:
  const Cublas* find(const Device& device) {
    const std::lock_guard lock(mutex_);
    const bool has_blas =
        device.kind == Device::Kind::cuda ||
        (device.kind == Device::Kind::cuda_sim && replaced_ != nullptr);
    if (!has_blas) return nullptr;
    const auto key = std::pair(memory_code(device), replaced_);
    const auto known = handles_.find(key);
    if (known != handles_.end()) return known->second.get();
    const CublasApi* const api = replaced_ != nullptr ? replaced_ : library();
    // A failed start leaves nothing behind, so it can be retried.
    std::unique_ptr<Cublas> made;
    if (api != nullptr) made = std::make_unique<Cublas>(*api, gpu_of(device));
    return handles_.emplace(key, std::move(made)).first->second.get();
  }

  void replace(const CublasApi* api) {
    const std::lock_guard lock(mutex_);
    replaced_ = api;
  }

 private:
  static const CublasApi* library() {
    static const CublasApi* const api = load_cublas();
    return api;
  }

  std::mutex mutex_;
  const CublasApi* replaced_ = nullptr;
  std::map<std::pair<std::uint8_t, const CublasApi*>, std::unique_ptr<Cublas>>
      handles_;
};

Handles& handles() {
  static auto* const all = new Handles;
  return *all;
}

int checked_size(std::int64_t size) {
  if (size <= std::numeric_limits<int>::max()) return int(size);
  throw Error(
      fmt::format("a matrix of {} rows or columns is too large for cuBLAS; use "
                  "smaller layers",
                  size));
}

int operation(const CublasMatrix& matrix) {
  return matrix.transposed ? CublasApi::transposed : CublasApi::as_it_is;
}

/// The arguments of a product, as cuBLAS orders them.
template <class T>
struct Gemm {
  CublasHandle handle;
  const ProductSizes& sizes;
  const CublasMatrix& a;
  const CublasMatrix& b;
  const CublasTarget& c;

  /// In and Out point to elements, or to the addresses of `count` matrices.
  template <class In, class Out, class Call, class... Count>
  int run(Call call, Count... count) const {
    const T one = 1;
    const T beta = c.accumulate ? T(1) : T(0);
    return call(handle, operation(a), operation(b), checked_size(sizes.m),
                checked_size(sizes.n), checked_size(sizes.k), &one,
                static_cast<In>(a.address), checked_size(a.leading),
                static_cast<In>(b.address), checked_size(b.leading), &beta,
                static_cast<Out>(c.address), checked_size(c.leading), count...);
  }
};

}  // namespace

Cublas::Cublas(const CublasApi& api, std::shared_ptr<Gpu> gpu)
    : api_(api), gpu_(std::move(gpu)) {
  gpu_->context().refuse_while_capturing("to start cuBLAS");
  const CurrentContext current(gpu_->context());
  check(api_.create(&handle_), "cublasCreate");
  check(api_.set_stream(handle_, gpu_->context().stream()), "cublasSetStream");
}

Cublas::~Cublas() {
  gpu_->context().quietly([&] { api_.destroy(handle_); });
}

void Cublas::check(int code, const char* call) const {
  if (code == CublasApi::success) return;
  throw Error(fmt::format("{}: {} failed with code {} ({})", gpu_->label(),
                          call, code, api_.get_status_string(code)));
}

void Cublas::multiply(DType dtype, const ProductSizes& sizes,
                      const CublasMatrix& a, const CublasMatrix& b,
                      const CublasTarget& c, int count) const {
  const auto run = [&](auto one, auto single, auto several) {
    using T = decltype(one);
    const Gemm<T> gemm = {handle_, sizes, a, b, c};
    return count == 1
               ? gemm.template run<const T*, T*>(single)
               : gemm.template run<const T* const*, T* const*>(several, count);
  };
  gpu_->context().refuse_in_recording("a matrix product");
  const CurrentContext current(gpu_->context());
  if (dtype == DType::float64) {
    check(run(1.0, api_.dgemm, api_.dgemm_batched), "cublasDgemm");
  } else {
    check(run(1.0F, api_.sgemm, api_.sgemm_batched), "cublasSgemm");
  }
}

const Cublas* cublas_for(const Device& device) {
  return handles().find(device);
}

void set_cublas_api(const CublasApi* api) { handles().replace(api); }

}  // namespace fuse
