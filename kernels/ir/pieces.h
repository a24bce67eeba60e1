#pragma once

#include <cstdint>
#include <source_location>
#include <vector>

#include "fusebook/ir/program.h"

namespace fuse {

/// One list domain, cut out of a program: nodes with local numbers for values,
/// slots and scalars.
struct Piece {
  std::vector<Node> nodes;
  std::vector<std::source_location> places;  ///< one a node
  std::vector<SlotInfo> slot_infos;
  std::vector<Store> stores;
  std::vector<std::int32_t> slots;    ///< program slot of each local one
  std::vector<std::int32_t> scalars;  ///< program scalar of each local one
};

/// All domains that store anything, in the order of their first store.
std::vector<Piece> cut_pieces(const Program& program);

/// True when the same is done to both, whatever the lists and numbers.
bool same_structure(const Piece& a, const Piece& b);

}  // namespace fuse
