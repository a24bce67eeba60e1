#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "fusebook/support/version.h"

namespace fuse {

/// The rows of ops.def, in order, followed by five pseudo-operations of
/// programs: `constant`, `argument`, `load`, `cast` and `draw`, and by the
/// reductions (reductions.h) of each tensor and of all tensors of a list. `draw`
/// makes random bits (kernels/prelude/draws.h) of the load of a list of positions
/// and of two numbers for each tensor, a key and a stream.
enum class OpCode : std::uint8_t {
#define OP(name, ...) name,
#include "fusebook/ops/ops.def"
#undef OP
  constant,
  argument,
  load,
  cast,
  draw,
  sum,
  sum_of_squares,
  amax,
  total_sum,
  total_sum_of_squares,
  total_amax,
};

/// Number of rows in ops.def.
inline constexpr int op_count = int(OpCode::constant);

/// The operands that a random test may draw for an operation.
enum class Domain : std::uint8_t { any, positive };

/// How the value of an operation comes about; see ops.def.
enum class OpKind : std::uint8_t {
  plain,
  arithmetic,
  division,
  library,
  bits,
  choice
};

/// One row of ops.def as data.
struct OpInfo {
  std::string_view name;
  int arity;
  /// The expression over a, b, c, d of type T, as text.
  std::string_view value;
  Domain domain;
  /// Bound on the error relative to the exactly rounded result.
  double ulp;
  OpKind kind;
  /// True for a MOVE row, whose value is its operand as it is.
  bool moves;
};

/// All rows, indexed by OpCode.
std::span<const OpInfo> op_table();
inline const OpInfo& info(OpCode op) { return op_table()[std::size_t(op)]; }

// What the table says of any OpCode; pseudo-operations are plain and no moves.

/// True when a NaN among its results is a quiet one.
bool is_arithmetic(OpCode op);
/// True when it divides or takes a root.
bool divides(OpCode op);
/// True when it calls the C library for each element.
bool calls_library(OpCode op);
/// True when it works on the bits of floats.
bool works_on_bits(OpCode op);
/// True when its value is its operand as it is.
bool is_move(OpCode op);

/// Name of any OpCode, those that have no row included.
std::string_view name_of(OpCode op);

}  // namespace fuse
