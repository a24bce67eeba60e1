#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fusebook/ops/ops.h"

namespace fuse {

/// Which group each tensor of a list belongs to, where parameter groups are
/// updated together.
struct TensorGroups {
  std::vector<std::int32_t> of_tensor;  ///< one a tensor, an index of `numbers`
  std::vector<int> numbers;             ///< of the groups in param_groups
};

/// A number that every group has for itself.
struct NumberColumn {
  std::shared_ptr<const TensorGroups> groups;
  std::vector<double> values;  ///< one a group
  bool same = true;            ///< all have the same bits
};

/// A number of a recording: one for all tensors, or one for each group of them.
struct Number {
  double value = 0;  ///< of the first group
  std::shared_ptr<const NumberColumn> column;

  /// True when it is one for all tensors now.
  bool is_single() const { return column == nullptr || column->same; }
  /// True when it has these bits in every group.
  bool is(double wanted) const;
};

/// One operation of ops.def on numbers, group by group where they differ.
Number apply_to_columns(OpCode op, std::span<const Number> in);

}  // namespace fuse
