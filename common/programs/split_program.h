#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "fusebook/ir/order.h"
#include "fusebook/ir/stored_memory.h"
#include "fusebook/programs/kernel_store.h"
#include "fusebook/runtime/bound_lists.h"
#include "fusebook/tensor/tensor_list.h"

namespace fuse {

/// A program that takes several launches because its lists share memory, and
/// what its parts have in common.
class SplitProgram {
 public:
  SplitProgram(const Request& request, std::vector<ProgramPart> parts);

  /// True for a program that has to be cut in the same way: the same operations,
  /// over lists that lie where those of this one do, or of which some that are
  /// only read have moved to memory that is not stored.
  bool serves(const Request& request);

  std::span<const ProgramPart> parts() const { return parts_; }
  /// Makes the parts of a program that this one serves. They refer to its lists.
  void make_parts(const Program& program);
  const Program& part(std::size_t k) const { return programs_[k]; }
  /// To be called for each part in turn, before it runs: numbers that later
  /// parts overwrite are read, after a wait for the GPU.
  void read_numbers(const Program& program, std::size_t k);

 private:
  class Maker;

  bool is_stored_to(const Program& program, std::int32_t slot);
  bool moved_apart(const Program& program);
  bool is_fixed(const Program& program, ValueId number);
  std::size_t part_of(ValueId value) const;
  void find_temporaries(const Program& program);
  void find_numbers(const Program& program);
  std::int32_t shape_of(const Program& program, ValueId value) const;

  std::uint64_t hash_;
  Program program_;  ///< its structure; the lists may be gone
  std::vector<ProgramPart> parts_;
  BoundLists bound_;
  StoredMemory stored_;
  std::vector<bool> shares_;  // a slot lies, in part, in what is stored
  std::map<ValueId, TensorList> temporaries_;
  std::map<ValueId, Number> numbers_;  // which were read
  std::vector<Program> programs_;
};

/// The programs of one function that take several launches.
class SplitStore {
 public:
  /// So many at most: beyond that the one used longest ago goes.
  static constexpr std::size_t most = 8;

  /// The one that serves a program; else null.
  SplitProgram* find(const Request& request);
  /// Keeps one for a program that has to be cut, or whose numbers have to be
  /// read before it runs; null for one that is in order. Throws Error as
  /// parts_in_order.
  SplitProgram* add(const Request& request);

 private:
  std::vector<std::unique_ptr<SplitProgram>> programs_;  // the latest last
};

}  // namespace fuse
