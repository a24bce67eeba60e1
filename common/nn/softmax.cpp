#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fusebook/nn/functional.h"
#include "fusebook/ops/element.h"
#include "fusebook/runtime/parallel_for.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/autograd.h"

namespace fuse {
namespace {

// Below this many elements a second thread costs more than it saves.
constexpr std::int64_t work_per_thread = 4096;

/// What is computed for one row of `n` elements from the rows of the inputs.
/// Sums are in float64, in order.
struct SoftmaxRow {
  template <class T>
  static void run(const std::array<const T*, 2>& in, T* out, std::int64_t n) {
    const T largest = *std::max_element(in[0], in[0] + n);
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      out[i] = std::exp(in[0][i] - largest);
      sum += double(out[i]);
    }
    for (std::int64_t i = 0; i < n; ++i) out[i] = T(double(out[i]) / sum);
  }
};

struct LogSoftmaxRow {
  template <class T>
  static void run(const std::array<const T*, 2>& in, T* out, std::int64_t n) {
    const T largest = *std::max_element(in[0], in[0] + n);
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      sum += double(std::exp(in[0][i] - largest));
    }
    const double log_sum = std::log(sum);
    for (std::int64_t i = 0; i < n; ++i) {
      out[i] = T(double(in[0][i]) - double(largest) - log_sum);
    }
  }
};

// From the output y and its gradient g: y (g - sum(g y)).
struct SoftmaxBackwardRow {
  template <class T>
  static void run(const std::array<const T*, 2>& in, T* out, std::int64_t n) {
    const auto [y, g] = in;
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += double(g[i]) * double(y[i]);
    for (std::int64_t i = 0; i < n; ++i) {
      out[i] = T(double(y[i]) * (double(g[i]) - sum));
    }
  }
};

// In the same way: g - exp(y) sum(g).
struct LogSoftmaxBackwardRow {
  template <class T>
  static void run(const std::array<const T*, 2>& in, T* out, std::int64_t n) {
    const auto [y, g] = in;
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += double(g[i]);
    for (std::int64_t i = 0; i < n; ++i) {
      out[i] = T(double(g[i]) - double(std::exp(y[i])) * sum);
    }
  }
};

template <class Row, class T>
void run_rows(std::span<const Tensor> inputs, const Tensor& output,
              std::int64_t n) {
  std::array<const T*, 2> in{};
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    in[k] = inputs[k].data<T>();
  }
  T* const out = Tensor(output).data<T>();
  parallel_for(output.numel() / n,
               std::max<std::int64_t>(work_per_thread / n, 1),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t row = begin; row < end; ++row) {
                   std::array<const T*, 2> at = in;
                   for (const T*& each : at) {
                     if (each != nullptr) each += row * n;
                   }
                   Row::run(at, out + row * n, n);
                 }
               });
}

void check_dim(const char* name, const Tensor& input, std::int64_t dim) {
  if (!input.defined()) {
    throw Error(std::string(name) + ": the input is undefined");
  }
  const std::int64_t rank = std::max<std::int64_t>(input.dim(), 1);
  if (dim >= -rank && dim < rank) return;
  throw Error(fmt::format("{}: a tensor of shape {} has no dimension {}", name,
                          to_string(input.shape()), dim));
}

/// Aligned rows along `dim` in host memory, one after another.
Tensor rows_along(const Tensor& tensor, std::int64_t dim) {
  const Tensor host = tensor.cpu();
  const Tensor turned = host.transpose(dim, -1);
  return turned.is_contiguous() ? turned.clone() : turned.contiguous();
}

template <class Row>
Tensor along(const char* name, std::int64_t dim,
             const std::vector<Tensor>& inputs) {
  const NoGradGuard guard;
  check_dim(name, inputs[0], dim);
  std::vector<Tensor> rows;
  for (const Tensor& input : inputs) rows.push_back(rows_along(input, dim));
  const Tensor output = empty(rows[0].shape(), rows[0].dtype(), cpu_device);
  with_computing_type(name, output.dtype(), [&](auto type) {
    if (output.numel() == 0) return;
    const std::int64_t n = output.dim() == 0 ? 1 : output.shape().back();
    run_rows<Row, decltype(type)>(rows, output, n);
  });
  return output.transpose(dim, -1).contiguous().to(inputs[0].device());
}

template <class Forward, class Backward>
Tensor differentiable(const char* name, const Tensor& input, std::int64_t dim) {
  const Tensor output = along<Forward>(name, dim, {input});
  return with_grad(output, {input},
                   [=, y = output.detach()](const Tensor& grad) -> Grads {
                     return {along<Backward>(name, dim, {y, grad})};
                   });
}

}  // namespace

Tensor softmax(const Tensor& input, std::int64_t dim) {
  return differentiable<SoftmaxRow, SoftmaxBackwardRow>("softmax", input, dim);
}

Tensor log_softmax(const Tensor& input, std::int64_t dim) {
  return differentiable<LogSoftmaxRow, LogSoftmaxBackwardRow>("log_softmax",
                                                              input, dim);
}

}  // namespace fuse
