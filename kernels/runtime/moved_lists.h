#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fusebook/ir/program.h"
#include "fusebook/ir/stored_memory.h"

namespace fuse {

/// The lists of a launch none of whose stored tensors has a byte in common with
/// another one: says whether that still holds when some of them lie elsewhere.
/// What has stayed is sorted once, and only what moves is looked at.
class MovedLists {
 public:
  /// A list of the program.
  struct List {
    std::size_t index;
    bool stored;
    std::size_t element_size;
  };
  /// A list that may have moved, with its addresses as they were.
  struct Moved {
    std::size_t index;
    void* const* from;
  };
  /// A list that has stayed so many times in a row stays, as far as can be
  /// known.
  static constexpr std::uint64_t stays_after = 8;

  /// For other lists, one after the other by their index.
  void assign(std::span<const List> lists);
  /// To be called when lists have moved that `are_apart` was not asked about, or
  /// that it has found together.
  void forget() { settled_ = false; }
  /// False where what has moved may share a byte with what is stored, or what is
  /// stored with another one. Bytes between the elements of a tensor count.
  bool are_apart(const Program& program, std::span<const Moved> moved);

 private:
  struct Known {
    List list;
    void* const* from = nullptr;  // of one that moves now
    std::uint64_t moved = 0;      // when it did the last time
    bool moves = false;           // it did not long ago
    StoredMemory memory;          // of one that is stored and moves
  };
  void note(const Program& program, std::span<const Moved> moved);
  void settle(const Program& program);
  static bool take_memory(const Program& program, Known& known);
  bool is_apart(const Program& program, const Known& known);

  std::vector<Known> lists_;
  std::uint64_t moves_ = 0;
  bool settled_ = false;
  StoredMemory stored_;                // by lists that stay
  StoredMemory read_;                  // only read, by lists that stay
  std::vector<StoredMemory*> others_;  // of the list that is looked at
};

}  // namespace fuse
