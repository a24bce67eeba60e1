#pragma once

#include <vector>

#include "fusebook/ir/memory_ranges.h"

namespace fuse {

/// Two lists of a program that share memory, of which one is stored.
struct Overlap {
  MemoryRange a;  ///< two tensors that do, of other slots
  MemoryRange b;
  /// They share nothing but whole tensors, each at the same place of both lists.
  bool coincident = true;
};

/// Of each value: whether it is stored, or another one that is comes from it.
std::vector<bool> live_values(const Program& program);

/// All such pairs of slots, each once, of what the program's stores come from.
/// Throws Error where tensors of one stored list share memory.
std::vector<Overlap> find_overlaps(const Program& program);

}  // namespace fuse
