// What the tests of compiled steps share: a kernel cache of their own, models
// of awkward shapes, and what the library logs.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/ops/element.h"
#include "fusebook/reports/log.h"
#include "fusebook/tensor/tensor.h"
#include "support/jit_testing.h"
#include "support/testing.h"

namespace step_testing {

// Made before main() starts, so that no kernel goes into the reader's cache.
inline const jit_testing::TempDir cache_folder;
inline const jit_testing::Env cache_variable{"FUSEBOOK_CACHE_DIR",
                                             cache_folder.path()};

/// Shapes in turn: 0-d, empty ones, one element, odd sizes.
inline std::vector<fuse::Shape> mixed_shapes(std::size_t count) {
  static const std::vector<fuse::Shape> cycle = {
      {7},       {},     {0},        {1},  {3, 0, 2}, {5, 13},
      {2, 3, 5}, {1, 1}, {17, 1, 3}, {64}, {129},     {4, 4}};
  std::vector<fuse::Shape> shapes;
  for (std::size_t i = 0; i < count; ++i) {
    shapes.push_back(cycle[i % cycle.size()]);
  }
  return shapes;
}

inline std::int64_t total_numel(const std::vector<fuse::Tensor>& tensors) {
  std::int64_t sum = 0;
  for (const fuse::Tensor& tensor : tensors) sum += tensor.numel();
  return sum;
}

/// Writes one number after the other, whatever the dtype.
inline void assign(const fuse::Tensor& tensor,
                   const std::vector<double>& values) {
  fuse::Tensor handle = tensor;
  fuse::with_type(tensor.dtype(), [&](auto type) {
    using T = decltype(type);
    for (std::size_t i = 0; i < values.size(); ++i) {
      handle.data<T>()[i] = static_cast<T>(values[i]);
    }
  });
}

/// Numbers of both signs whose size lies between `least` and one.
inline fuse::Tensor random_tensor(const fuse::Shape& shape,
                                  testing::Random& random, double least = 0,
                                  fuse::DType dtype = fuse::DType::float32) {
  fuse::Tensor tensor = fuse::empty(shape, dtype);
  std::vector<double> values(std::size_t(tensor.numel()));
  for (double& value : values) {
    value = random.uniform(least, 1) * (random.chance(0.5) ? 1 : -1);
  }
  assign(tensor, values);
  return tensor;
}

/// Gives every tensor a gradient. They are never small, so that rounding does
/// not turn their signs.
inline void set_random_grads(const std::vector<fuse::Tensor>& params,
                             testing::Random& random) {
  for (fuse::Tensor param : params) {
    param.set_grad(random_tensor(param.shape(), random, 0.25, param.dtype()));
  }
}

/// Parameters with gradients.
inline std::vector<fuse::Tensor> make_params(
    const std::vector<fuse::Shape>& shapes, std::uint64_t seed,
    fuse::DType dtype = fuse::DType::float32) {
  testing::Random random(seed);
  std::vector<fuse::Tensor> params;
  for (const fuse::Shape& shape : shapes) {
    params.push_back(random_tensor(shape, random, 0, dtype));
  }
  set_random_grads(params, random);
  return params;
}

/// Copies in memory of their own, gradients too.
inline std::vector<fuse::Tensor> copies(
    const std::vector<fuse::Tensor>& tensors) {
  std::vector<fuse::Tensor> copied;
  for (const fuse::Tensor& tensor : tensors) {
    copied.push_back(tensor.clone());
    if (tensor.grad().defined()) {
      copied.back().set_grad(tensor.grad().clone());
    }
  }
  return copied;
}

/// fuse::bitwise_equal, quick where the bytes are the same.
inline bool same_bits(const fuse::Tensor& a, const fuse::Tensor& b) {
  if (a.shape() == b.shape() && a.dtype() == b.dtype() && a.is_contiguous() &&
      b.is_contiguous() &&
      std::memcmp(a.raw_data(), b.raw_data(), a.nbytes()) == 0) {
    return true;
  }
  return fuse::bitwise_equal(a, b);
}

inline bool same_bits(const std::vector<fuse::Tensor>& a,
                      const std::vector<fuse::Tensor>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const auto& x, const auto& y) { return same_bits(x, y); });
}

/// Collects what one log channel says, until its end.
class LogCapture {
 public:
  explicit LogCapture(fuse::Log channel) : channel_(channel) {
    fuse::set_logs(channel_);
    fuse::set_log_sink(
        [this](const fuse::LogMessage& message) { text_ += message.text; });
  }
  ~LogCapture() {
    fuse::set_logs(channel_, false);
    fuse::set_log_sink({});
  }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  /// Everything since the last call.
  std::string take() { return std::exchange(text_, {}); }

 private:
  fuse::Log channel_;
  std::string text_;
};

}  // namespace step_testing
