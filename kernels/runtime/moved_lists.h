#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fusebook/ir/program.h"
#include "fusebook/ir/stored_memory.h"

namespace fuse {

/// The lists of a launch in which no stored tensor shares a byte with another
/// tensor: tells whether this still holds after some have moved. Lists that
/// stay are sorted once; only those that move are checked.
class MovedLists {
 public:
  /// A list of the program.
  struct List {
    std::size_t index;
    bool stored;
    std::size_t element_size;
  };
  /// A list that may have moved, with its old addresses.
  struct Moved {
    std::size_t index;
    void* const* from;
  };
  /// A list that has stayed this many times in a row is assumed to stay.
  static constexpr std::uint64_t stays_after = 8;

  /// Starts over with other lists, ordered by index.
  void assign(std::span<const List> lists);
  /// Call this when lists have moved without a call of `are_apart`, or when it
  /// has found an overlap.
  void forget() { settled_ = false; }
  /// False if something that has moved may share a byte with something stored,
  /// or if stored lists may overlap. Bytes between the elements of a tensor
  /// count.
  bool are_apart(const Program& program, std::span<const Moved> moved);

 private:
  struct Known {
    List list;
    void* const* from = nullptr;  // old addresses, if it moves now
    std::uint64_t moved = 0;      // when it last moved
    bool moves = false;           // it moved recently
    StoredMemory memory;          // its memory, if it is stored and moves
  };
  void note(const Program& program, std::span<const Moved> moved);
  void settle(const Program& program);
  static bool take_memory(const Program& program, Known& known);
  bool is_apart(const Program& program, const Known& known);

  std::vector<Known> lists_;
  std::uint64_t moves_ = 0;
  bool settled_ = false;
  StoredMemory stored_;                // by lists that stay
  StoredMemory read_;                  // read-only, by lists that stay
  std::vector<StoredMemory*> others_;  // for the list being checked
};

}  // namespace fuse
