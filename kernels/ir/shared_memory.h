#pragma once

#include <vector>

#include "fusebook/ir/memory_ranges.h"

namespace fuse {

/// Two lists of a program that share memory, one of which is stored.
struct Overlap {
  MemoryRange a;  ///< two overlapping tensors, of different slots
  MemoryRange b;
  /// They share only whole tensors, each at the same index of both lists.
  bool coincident = true;
};

/// For each value: whether it is stored, or a stored value depends on it.
std::vector<bool> live_values(const Program& program);

/// All such pairs of slots, each once, among those the stores depend on. Throws
/// Error if tensors of one stored list share memory.
std::vector<Overlap> find_overlaps(const Program& program);

}  // namespace fuse
