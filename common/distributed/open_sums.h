#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "fusebook/tensor/tensor_list.h"
#include "fusebook/trace/scalar.h"

namespace fuse {

/// What sums are scaled by once they are made, in this order.
struct SumFactors {
  std::optional<Scalar> multiply_by = {};
  std::optional<Scalar> divide_by = {};
};

/// A list of sums that are still to be made.
struct OpenList {
  TensorList to;                  ///< where they go
  std::vector<TensorList> terms;  ///< what is added, in this order
  bool is_new = false;            ///< the first term replaces what is there

  /// Makes them, rounding to the dtype of the sums after each operation: a few of
  /// them, which `compile` makes part of a launch.
  void add_up(const SumFactors& factors = {}) const;
};

/// Sums of tensors that are still to be made, perhaps by the launch that uses
/// them.
struct OpenSums {
  std::vector<Tensor> to;                  ///< undefined: there is no sum
  std::vector<std::vector<Tensor>> terms;  ///< each as long as `to`
  bool is_new = false;                     ///< as OpenList

  /// Those that `places` tells, as a list.
  OpenList list(TensorList sums, const std::vector<std::size_t>& places) const;
  /// All of them, in lists of one dtype each.
  std::vector<OpenList> lists() const;
  /// The same for all chunks of the fixed summation, one tensor for each.
  OpenSums chunks() const;
};

}  // namespace fuse
