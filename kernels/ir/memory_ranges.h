#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "fusebook/ir/program.h"
#include "fusebook/layout/memory_overlap.h"

namespace fuse {

/// The memory of one tensor in one slot of a program.
struct MemoryRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::size_t entry = 0;
  std::int32_t slot = -1;
  std::int32_t instance = -1;  ///< index in the plan, if it has one
  bool stored = false;
  const Layout* layout = nullptr;  ///< null in row-major order
};

MemoryRange make_range(const Program& program, std::int32_t slot,
                       std::size_t entry);

/// The order of ranges in memory.
inline bool before(const MemoryRange& a, const MemoryRange& b) {
  return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
}

/// The exact bytes of the elements.
Region region_of(const Program& program, const MemoryRange& range);

/// True if both are the same elements at the same addresses.
bool same_tensor(const Program& program, const MemoryRange& a,
                 const MemoryRange& b);

/// True for a number that every tensor reads.
bool is_number(const Program& program, const MemoryRange& range);

/// "params[3]"
std::string describe(const Program& program, const MemoryRange& range);

/// "stored at file:line"; empty for an unknown place.
std::string at_place(const char* what, const std::source_location& place);

/// Throws Error because both overlap, one is stored, and their order is
/// undefined.
[[noreturn]] void refuse_overlap(const Program& program, const MemoryRange& a,
                                 const MemoryRange& b);

/// Throws Error if elements of a stored tensor share memory.
void refuse_shared_elements(const Program& program, const MemoryRange& range);

}  // namespace fuse
