#pragma once

#include <cstdint>

namespace fuse {

/// Sizes of one Linear layer applied to a batch.
struct LinearSizes {
  std::int64_t batch;
  std::int64_t in;
  std::int64_t out;
};

/// Loops of the Linear layer for `T` = float or double. Every sum has a fixed
/// order that depends on the sizes alone: never on the width of the machine's
/// vectors or on the number of threads.

/// output[b, o] = sum over i of input[b, i] * weight[o, i], plus bias[o] where
/// `bias` is not null.
template <class T>
void linear_forward(const LinearSizes& sizes, const T* input, const T* weight,
                    const T* bias, T* output);

/// grad_input[b, i] = sum over o of grad_output[b, o] * weight[o, i].
template <class T>
void linear_grad_input(const LinearSizes& sizes, const T* grad_output,
                       const T* weight, T* grad_input);

/// grad[o, i] = sum over b of grad_output[b, o] * input[b, i], added to what
/// `grad` holds when `accumulate` is set. `grad` may have any address.
template <class T>
void linear_grad_weight(const LinearSizes& sizes, const T* grad_output,
                        const T* input, bool accumulate, T* grad);

/// grad[o] = sum over b of grad_output[b, o], likewise.
template <class T>
void linear_grad_bias(const LinearSizes& sizes, const T* grad_output,
                      bool accumulate, T* grad);

}  // namespace fuse
