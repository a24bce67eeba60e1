#pragma once

#include <array>
#include <span>

#include "fusebook/ops/dtype.h"
#include "fusebook/ops/ops.h"
#include "fusebook/prelude/target.h"

namespace fuse {

/// out[i] = op(a[i], b[i], ...) for i in [0, n). `out` may be one of the
/// inputs, but must not overlap otherwise. Addresses need no alignment.
using Loop = void (*)(void* out, const void* const* in, i64 n);

/// Loops of one operation and dtype, indexed by a mask in which bit k means
/// that operand k is a single value instead of an array.
using LoopRow = std::array<Loop, 16>;

/// Prebuilt loops for one instruction set, expanded from ops.def.
struct LoopTable {
  const char* name;
  /// [dtype][op]; only float32 and float64.
  std::array<std::array<LoopRow, op_count>, 2> ops;
  /// [from][to] as stored in memory; bit 0 of the mask as above.
  std::array<std::array<LoopRow, dtype_count>, dtype_count> casts;
  /// [from][to] for 16-bit `to`: from float32 or float64 to floats that hold
  /// the rounded numbers. Empty for other types.
  std::array<std::array<LoopRow, dtype_count>, 2> rounds;
};

/// The loops for the best instruction set of this machine.
const LoopTable& loops();

/// One operation on single numbers, with the bits of the float64 loops; not for
/// casts and loads, which have no row.
double apply_to_numbers(OpCode op, std::span<const double> operands);

/// The table of one instruction set: "baseline", "x86-64-v3" or "x86-64-v4";
/// nullptr if this build or this machine does not have it.
const LoopTable* loops_for(const char* instruction_set);

}  // namespace fuse
