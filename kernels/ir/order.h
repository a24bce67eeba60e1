#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fusebook/ir/program.h"

namespace fuse {

/// A value that an earlier part of a program has computed.
struct Carried {
  ValueId value = -1;
  /// The slot whose content it is when the part begins; -1 for none.
  std::int32_t slot = -1;
  ValueId user = -1;  ///< the first node of the part that takes it
};

/// One part of a program whose stores only come in order if it is cut.
struct ProgramPart {
  ValueId begin = 0;  ///< its first node
  ValueId end = 0;    ///< behind its last one
  std::string why;    ///< it begins here; empty for the first part
  std::vector<StoreEvent> stores;
  std::vector<Carried> carried;
  /// Loads of numbers that the very operation overwrites which they are for:
  /// they are read before the part runs.
  std::vector<ValueId> early;
};

/// Cuts a program into parts, each of which can be one launch: where eager mode
/// would see what an operation before has stored, or would store over what one
/// before has read, through lists that share memory; and where lists of other
/// shapes meet through one list. One part if all is in order. A part may be
/// empty. Throws Error for an overlap within one operation, which has no order.
std::vector<ProgramPart> parts_in_order(const Program& program);

}  // namespace fuse
