#pragma once

#include <cstdint>
#include <source_location>
#include <vector>

#include "fusebook/ir/program.h"

namespace fuse {

/// One list domain, cut out of a program: nodes with local indices for values,
/// slots and scalars.
struct Piece {
  std::vector<Node> nodes;
  std::vector<std::source_location> places;  ///< one per node
  std::vector<SlotInfo> slot_infos;
  std::vector<Store> stores;
  std::vector<std::int32_t> slots;    ///< program slot for each local one
  std::vector<std::int32_t> scalars;  ///< program scalar for each local one
};

/// All domains with stores, in the order of their first store.
std::vector<Piece> cut_pieces(const Program& program);

/// True if both do the same, whatever the lists and numbers.
bool same_structure(const Piece& a, const Piece& b);

}  // namespace fuse
