#pragma once

#include <cstdint>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "program.h"

namespace fuse {

/// A node of a body. Leaves: `constant` (value), `argument` (index into
/// Launch::args), `column` nodes are arguments of entry rate (index into the
/// row's columns), `load` (index of the body's slot).
struct BodyNode {
  OpCode op{};
  Rate rate{};
  DType dtype{};
  std::uint8_t arity = 0;
  std::int32_t in[4] = {-1, -1, -1, -1};
  std::int32_t index = -1;
  double value = 0;
  Origin origin;
  std::source_location place;  ///< of what was recorded; no part of the code
};

struct BodySlot {
  DType dtype{};
  Rate rate{};
  bool loaded = false;
  bool stored = false;
  std::string name;
  bool strided = false;  ///< see SlotInfo
};

/// What one kernel does to one tensor (and its companions in the other lists).
/// Nodes stand in order of evaluation.
struct Body {
  std::vector<BodyNode> nodes;
  std::vector<BodySlot> slots;
  std::vector<Store> stores;
  int columns = 0;

  /// Bytes that are loaded and stored for each element, and for each tensor.
  std::int64_t bytes_per_element() const;
  std::int64_t bytes_per_entry() const;
  /// True when some list is strided: each row of the table is then a line of a
  /// tensor, with a stride in every slot.
  bool strided() const;
};

/// One list domain of the program that runs through a body.
struct Instance {
  int body = 0;
  std::vector<std::int32_t> slots;    ///< program slot of each body slot
  std::vector<std::int32_t> columns;  ///< program scalar of each column
};

/// A scalar whose bits are baked into the code.
struct Guard {
  std::int32_t scalar = -1;
  double value = 0;
};

/// A program lowered to the bodies of one kernel.
struct Plan {
  std::vector<Body> bodies;
  std::vector<Instance> instances;
  std::vector<std::int32_t> args;  ///< program scalar of each launch argument
  std::vector<Guard> guards;
  int column_count = 0;  ///< columns of the widest body

  /// True when the program's scalars have the bits this plan was made for.
  bool matches(const Program& program) const;
};

/// Decides whether a recorded constant may be baked into the code.
using MayBake = bool (*)(void* context, const Origin& origin);

/// Lowers a program: dead code, structurally equal list domains merged into one
/// body, scalars classified (baked, argument, column), constants folded, common
/// subexpressions shared.
Plan make_plan(const Program& program, MayBake may_bake, void* context);

}  // namespace fuse
