#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fusebook/ir/program.h"

namespace fuse {

/// A value computed by an earlier part of a program.
struct Carried {
  ValueId value = -1;
  /// The slot that contains it when the part begins; -1 if there is none.
  std::int32_t slot = -1;
  ValueId user = -1;  ///< the first node of the part that uses it
};

/// One part of a program that must be cut for its stores to be in order.
struct ProgramPart {
  ValueId begin = 0;  ///< its first node
  ValueId end = 0;    ///< one past its last node
  std::string why;    ///< why it begins here; empty for the first part
  std::vector<StoreEvent> stores;
  std::vector<Carried> carried;
  /// Loads of numbers that the operation using them overwrites: they are read
  /// before the part runs.
  std::vector<ValueId> early;
};

/// Cuts a program into parts, each of which can be one launch: where eager mode
/// would see a previous operation's stores, or overwrite what one has read,
/// through lists that share memory; and where lists of different shapes meet
/// through one list. A single part if everything is in order. A part may be
/// empty. Throws Error for an overlap within one operation, which has no
/// defined order.
std::vector<ProgramPart> parts_in_order(const Program& program);

}  // namespace fuse
