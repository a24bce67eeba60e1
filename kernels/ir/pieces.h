#pragma once

#include <cstdint>
#include <source_location>
#include <vector>

#include "fusebook/ir/program.h"

namespace fuse {

/// One list domain, cut out of a program: nodes with local indices for values,
/// slots and scalars. A domain that is reduced is a piece in each phase that
/// reduces it: such a piece stores the results alone, and where they are used
/// they are loaded, from slots that the program itself does not have.
struct Piece {
  std::vector<Node> nodes;
  std::vector<std::source_location> places;  ///< one per node
  std::vector<SlotInfo> slot_infos;
  std::vector<Store> stores;
  /// Program slot for each local one; behind those of the program, one for each
  /// of its reductions and for each number that it keeps (Phases::kept).
  std::vector<std::int32_t> slots;
  std::vector<std::int32_t> scalars;  ///< program scalar for each local one
  int phase = 0;  ///< all pieces of a phase run before those of the next one
};

/// All domains with stores, in the order of their first store, behind what is
/// reduced for them, phase by phase. All stores of the program are in the last
/// phase.
std::vector<Piece> cut_pieces(const Program& program);

/// True if both do the same, whatever the lists and numbers.
bool same_structure(const Piece& a, const Piece& b);

}  // namespace fuse
