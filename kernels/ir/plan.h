#pragma once

#include <cstdint>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "fusebook/ir/pieces.h"
#include "fusebook/ir/program.h"
#include "fusebook/support/function_ref.h"

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

/// How a scalar of what a body was made from gets into it.
struct ScalarUse {
  enum class Kind : std::uint8_t {
    baked,     ///< its value stands in the code
    argument,  ///< a launch argument, so that only one instance can use the body
    column,    ///< of the instance
  };

  Kind kind{};
  std::int32_t index = -1;  ///< of the argument or column
  double value = 0;         ///< that is baked
  Origin origin;
};

/// What a body was made from: by it, lists and scalars of another program are
/// seen to fit.
struct BodySource {
  std::vector<Node> nodes;
  std::vector<std::source_location> places;  ///< one a node
  std::vector<SlotInfo> slots;
  std::vector<std::string> names;  ///< one a slot
  std::vector<Store> stores;
  std::vector<ScalarUse> scalars;  ///< in local numbers, as the nodes have them
};

/// One list domain of the program that runs through a body.
struct Instance {
  int body = 0;
  std::vector<std::int32_t> slots;    ///< program slot of each body slot
  std::vector<std::int32_t> columns;  ///< program scalar of each column
  /// Its lists hold the tensors of several groups: each tensor has columns of its
  /// own.
  bool by_tensor = false;
};

/// A scalar whose bits are baked into the code.
struct Guard {
  std::int32_t scalar = -1;
  double value = 0;
};

/// A program lowered to the bodies of one kernel.
struct Plan {
  std::vector<Body> bodies;
  std::vector<BodySource> sources;  ///< one a body
  std::vector<Instance> instances;
  /// Program scalar of each launch argument; -1 where the body that reads it has
  /// no instance.
  std::vector<std::int32_t> args;
  std::vector<Guard> guards;
  int column_count = 0;  ///< columns of the widest body

  /// True when the program's scalars have the bits this plan was made for, and
  /// differ between groups only where it has columns for them.
  bool matches(const Program& program) const;
};

/// Decides whether a recorded constant may be baked into the code.
using MayBake = FunctionRef<bool(const Origin& origin)>;

/// Lowers a program: dead code, structurally equal list domains merged into one
/// body, scalars classified (baked, argument, column), constants folded, common
/// subexpressions shared.
Plan make_plan(const Program& program, MayBake may_bake);
/// The same for a program that was cut into its pieces.
Plan make_plan(const Program& program, std::span<const Piece> pieces,
               MayBake may_bake);

}  // namespace fuse
