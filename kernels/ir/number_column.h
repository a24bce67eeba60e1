#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fusebook/ops/ops.h"

namespace fuse {

/// The group of each tensor of a list whose parameter groups are updated
/// together.
struct TensorGroups {
  /// one per tensor, an index of `numbers`
  std::vector<std::int32_t> of_tensor;
  std::vector<int> numbers;  ///< indices of the groups in param_groups
};

/// A number with a separate value for every group.
struct NumberColumn {
  std::shared_ptr<const TensorGroups> groups;
  std::vector<double> values;  ///< one per group
  bool same = true;            ///< all have the same bits
};

/// A number of a recording: one for all tensors, or one per group.
struct Number {
  double value = 0;  ///< value of the first group
  std::shared_ptr<const NumberColumn> column;

  /// True if it is currently the same for all tensors.
  bool is_single() const { return column == nullptr || column->same; }
  /// True if it has these bits in every group.
  bool is(double wanted) const;
};

/// One operation of ops.def on numbers, group by group where they differ.
Number apply_to_columns(OpCode op, std::span<const Number> in);

}  // namespace fuse
