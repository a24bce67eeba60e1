#include "linear_kernels.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "element.h"
#include "parallel_for.h"

namespace fuse {
namespace {

/// Below this many multiplications a second thread costs more than it saves.
constexpr std::int64_t work_per_thread = 32768;
constexpr std::int64_t lanes = 16;
constexpr std::int64_t tile = 256;

std::int64_t grain_of(std::int64_t work_per_index) {
  return std::max<std::int64_t>(
      1, work_per_thread / std::max<std::int64_t>(work_per_index, 1));
}

/// Sixteen partial sums, folded in halves: vector code of any width up to
/// sixteen lanes adds in exactly this order.
template <class T>
T dot(const T* a, const T* b, std::int64_t count) {
  std::array<T, lanes> partial{};
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      partial[std::size_t(lane)] += a[i + lane] * b[i + lane];
    }
  }
  for (std::int64_t lane = 0; i < count; ++i, ++lane) {
    partial[std::size_t(lane)] += a[i] * b[i];
  }
  for (std::size_t half = lanes / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) {
      partial[lane] += partial[lane + half];
    }
  }
  return partial[0];
}

/// sums[i] += factor * values[i]
template <class T>
void add_scaled(T factor, const T* values, std::int64_t count, T* sums) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] += factor * values[i];
}

template <class T>
void store_sums(const T* sums, std::int64_t count, bool accumulate, T* grad,
                std::int64_t first) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto index = std::size_t(first + i);
    const T old = accumulate ? load_element<T>(grad, index) : T(0);
    store_element(grad, index, accumulate ? old + sums[i] : sums[i]);
  }
}

}  // namespace

template <class T>
void linear_forward(const LinearSizes& sizes, const T* input, const T* weight,
                    const T* bias, T* output) {
  parallel_for(sizes.out, grain_of(sizes.in * sizes.batch),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t o = begin; o < end; ++o) {
                   const T* row = weight + o * sizes.in;
                   for (std::int64_t b = 0; b < sizes.batch; ++b) {
                     const T sum = dot(input + b * sizes.in, row, sizes.in);
                     output[b * sizes.out + o] =
                         bias == nullptr ? sum : sum + bias[o];
                   }
                 }
               });
}

template <class T>
void linear_grad_input(const LinearSizes& sizes, const T* grad_output,
                       const T* weight, T* grad_input) {
  parallel_for(sizes.in, grain_of(sizes.out * sizes.batch),
               [&](std::int64_t begin, std::int64_t end) {
                 const std::int64_t count = end - begin;
                 for (std::int64_t b = 0; b < sizes.batch; ++b) {
                   T* sums = grad_input + b * sizes.in + begin;
                   std::fill(sums, sums + count, T(0));
                   for (std::int64_t o = 0; o < sizes.out; ++o) {
                     add_scaled(grad_output[b * sizes.out + o],
                                weight + o * sizes.in + begin, count, sums);
                   }
                 }
               });
}

template <class T>
void linear_grad_weight(const LinearSizes& sizes, const T* grad_output,
                        const T* input, bool accumulate, T* grad) {
  const auto run_row = [&](std::int64_t o) {
    std::array<T, tile> sums;
    for (std::int64_t i = 0; i < sizes.in; i += tile) {
      const std::int64_t count = std::min(tile, sizes.in - i);
      std::fill(sums.begin(), sums.begin() + count, T(0));
      for (std::int64_t b = 0; b < sizes.batch; ++b) {
        add_scaled(grad_output[b * sizes.out + o], input + b * sizes.in + i,
                   count, sums.data());
      }
      store_sums(sums.data(), count, accumulate, grad, o * sizes.in + i);
    }
  };
  parallel_for(sizes.out, grain_of(sizes.in * sizes.batch),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t o = begin; o < end; ++o) run_row(o);
               });
}

template <class T>
void linear_grad_bias(const LinearSizes& sizes, const T* grad_output,
                      bool accumulate, T* grad) {
  for (std::int64_t o = 0; o < sizes.out; ++o) {
    T sum = 0;
    for (std::int64_t b = 0; b < sizes.batch; ++b) {
      sum += grad_output[b * sizes.out + o];
    }
    store_sums(&sum, 1, accumulate, grad, o);
  }
}

template void linear_forward(const LinearSizes&, const float*, const float*,
                             const float*, float*);
template void linear_forward(const LinearSizes&, const double*, const double*,
                             const double*, double*);
template void linear_grad_input(const LinearSizes&, const float*, const float*,
                                float*);
template void linear_grad_input(const LinearSizes&, const double*,
                                const double*, double*);
template void linear_grad_weight(const LinearSizes&, const float*, const float*,
                                 bool, float*);
template void linear_grad_weight(const LinearSizes&, const double*,
                                 const double*, bool, double*);
template void linear_grad_bias(const LinearSizes&, const float*, bool, float*);
template void linear_grad_bias(const LinearSizes&, const double*, bool,
                               double*);

}  // namespace fuse
