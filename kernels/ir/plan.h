#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "fusebook/ir/pieces.h"
#include "fusebook/ir/program.h"
#include "fusebook/support/function_ref.h"

namespace fuse {

/// A node of a body. Leaves: `constant` (value), `argument` (index into
/// Launch::args; `column` nodes are arguments of entry rate with an index into
/// the row's columns), `load` (index of the body's slot).
struct BodyNode {
  OpCode op{};
  Rate rate{};
  DType dtype{};
  std::uint8_t arity = 0;
  std::int32_t in[4] = {-1, -1, -1, -1};
  std::int32_t index = -1;
  double value = 0;
  Origin origin;
  /// of the recorded operation; not part of the code
  std::source_location place;
};

struct BodySlot {
  DType dtype{};
  Rate rate{};
  bool loaded = false;
  bool stored = false;
  std::string name;
  bool strided = false;  ///< see SlotInfo
  /// How its elements lie in blocks, if they do: `dtype` then is what they decode
  /// to.
  std::optional<DType> blocks = {};
  /// For a list of positions the node that draws for them, else -1: what is loaded
  /// is what was drawn.
  std::int32_t draw = -1;

  /// True for a list of positions, which is in no memory.
  bool draws() const { return draw >= 0; }
  /// Where and as what its elements are in memory.
  DType stored_dtype() const {
    return draws() ? DType::position : blocks.value_or(dtype);
  }
};

/// What one kernel does to one tensor (and its companions in the other lists).
/// Nodes are in order of evaluation.
struct Body {
  std::vector<BodyNode> nodes;
  std::vector<BodySlot> slots;
  std::vector<Store> stores;
  int columns = 0;

  /// Bytes loaded and stored for each element, and for each tensor; and the scales
  /// that are, of the blocks of so many elements.
  std::int64_t bytes_per_element() const;
  std::int64_t bytes_of_scales(std::int64_t numel) const;
  std::int64_t bytes_per_entry() const;
  /// True if some of its lists lie in blocks: then all tensors are dense in
  /// row-major order.
  bool has_blocks() const;
  /// The size of the largest of these blocks, or zero.
  std::int64_t largest_block() const;
  /// True if it has whole numbers of 16 bits, or works on the bits of floats.
  bool has_halves() const;
  /// True if it draws random bits.
  bool draws() const;
  /// True if some list is strided: then each row of the table is a line of a
  /// tensor, with a stride for every slot.
  bool strided() const;
  /// True if it reduces elements. Then its stores are the results of reductions,
  /// each into its own slot: of entry rate, or uniform for a total.
  bool reduces() const;
};

/// How a scalar of a body's source is passed to it.
struct ScalarUse {
  enum class Kind : std::uint8_t {
    baked,     ///< its value is in the code
    argument,  ///< a launch argument, so only one instance can use the body
    column,    ///< a column of the instance
  };

  Kind kind{};
  std::int32_t index = -1;  ///< index of the argument or column
  double value = 0;         ///< the baked value
  Origin origin;
};

/// The source of a body: used to check whether lists and scalars of another
/// program fit.
struct BodySource {
  std::vector<Node> nodes;
  std::vector<std::source_location> places;  ///< one per node
  std::vector<SlotInfo> slots;
  std::vector<std::string> names;  ///< one per slot
  std::vector<Store> stores;
  /// in local numbering, in the order of the nodes
  std::vector<ScalarUse> scalars;
};

/// One list domain of the program that runs through a body.
struct Instance {
  int body = 0;
  /// program slot for each body slot; see Piece
  std::vector<std::int32_t> slots;
  std::vector<std::int32_t> columns;  ///< program scalar for each column
  /// Its lists hold the tensors of several groups: each tensor has its own
  /// columns.
  bool by_tensor = false;
  int phase = 0;  ///< see Piece
};

/// A scalar whose bits are baked into the code.
struct Guard {
  std::int32_t scalar = -1;
  double value = 0;
};

/// A program lowered to the bodies of one kernel.
struct Plan {
  std::vector<Body> bodies;
  std::vector<BodySource> sources;  ///< one per body
  std::vector<Instance> instances;  ///< phase by phase
  /// Program scalar for each launch argument; -1 if the body that reads it has
  /// no instance.
  std::vector<std::int32_t> args;
  std::vector<Guard> guards;
  int column_count = 0;  ///< number of columns of the widest body

  /// The number of phases: one more than follow each other in reductions.
  int phases() const {
    return instances.empty() ? 1 : instances.back().phase + 1;
  }
  /// The bodies that run in a phase, in ascending order.
  std::vector<std::size_t> bodies_of(int phase) const;
  /// True if some body reduces.
  bool reduces() const;
  /// True if some body has lists in blocks.
  bool has_blocks() const;
  /// True if some body has halves.
  bool has_halves() const;
  /// True if some body draws.
  bool draws() const;
  /// True if the program's scalars have the bits this plan was made for, and
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
