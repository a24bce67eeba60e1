#pragma once

#include <source_location>

#include "fusebook/tensor/tensor_list.h"
#include "fusebook/trace/scalar.h"

namespace fuse {

// Reductions make one number of many elements. Inside `compile` they are
// recorded like everything else, and what follows may use the numbers: nothing
// waits for them, and nothing is stored before they are known. Elements are
// added in one fixed order, as float64, so that results have the same bits
// compiled, interpreted, on a GPU, and on any number of threads.

/// The norm of each tensor, like torch._foreach_norm: a list of one float64
/// number per tensor. `ord` is 2, 1, infinity, or another positive number, whose
/// powers come from the C library. Throws Error for other orders, for a list of
/// per-tensor numbers, and for the infinity norm of a tensor without elements.
[[nodiscard]] TensorList foreach_norm(
    const TensorList& list, double ord = 2.0,
    std::source_location place = std::source_location::current());

/// The sum of each tensor, a list of one float64 number per tensor; 0 for one
/// without elements. Throws Error for a list of per-tensor numbers.
[[nodiscard]] TensorList foreach_sum(
    const TensorList& list,
    std::source_location place = std::source_location::current());

/// The largest element of each tensor, NaN if one is: a list of one float64
/// number per tensor. Throws Error for a tensor without elements and for a list
/// of per-tensor numbers.
[[nodiscard]] TensorList foreach_amax(
    const TensorList& list,
    std::source_location place = std::source_location::current());

/// The norm of all elements of a list together, as one number; 0 for an empty
/// list. Inside `compile`, asking for its value breaks the graph; afterwards it
/// waits for the device. Throws Error like foreach_norm.
[[nodiscard]] Scalar total_norm(
    const TensorList& list, double ord = 2.0,
    std::source_location place = std::source_location::current());

/// 1 if no element of a list is infinite or NaN, else 0. Throws Error for a list
/// of per-tensor numbers.
[[nodiscard]] Scalar all_finite(
    const TensorList& list,
    std::source_location place = std::source_location::current());

}  // namespace fuse
