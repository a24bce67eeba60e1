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

/// A program that needs several launches because its lists share memory, and
/// what its parts have in common.
class SplitProgram {
 public:
  SplitProgram(const Request& request, std::vector<ProgramPart> parts);

  /// True for a program that must be cut in the same way: the same operations,
  /// over lists at the same addresses, except that some lists that are only
  /// read may have moved to memory that is not stored to.
  bool serves(const Request& request);

  std::span<const ProgramPart> parts() const { return parts_; }
  /// Makes the parts of a program that this one serves. They refer to its
  /// lists.
  void make_parts(const Program& program);
  const Program& part(std::size_t k) const { return programs_[k]; }
  /// Call this for each part in turn, before it runs: reads the numbers that
  /// later parts overwrite, waiting for the GPU.
  void read_numbers(const Program& program, std::size_t k);

 private:
  class Maker;

  bool is_stored_to(const Program& program, std::int32_t slot);
  bool moved_apart(const Program& program);
  bool is_fixed(const Program& program, ValueId number);
  std::size_t part_of(ValueId value) const;
  void find_temporaries(const Program& program);
  void find_numbers(const Program& program);
  void add_result(const Program& program, ValueId number);
  std::int32_t shape_of(const Program& program, ValueId value) const;

  std::uint64_t hash_;
  Program program_;  ///< structure only; the lists may no longer exist
  std::vector<ProgramPart> parts_;
  BoundLists bound_;
  StoredMemory stored_;
  std::vector<bool> shares_;  // slots that overlap stored memory
  std::map<ValueId, TensorList> temporaries_;
  std::map<ValueId, Number> numbers_;  // numbers that were read
  // A number that comes from reductions in an earlier part: what stores it, and
  // what loads it for all tensors.
  struct Result {
    TensorList stored;
    std::shared_ptr<ListImpl> loaded;
  };
  std::map<ValueId, Result> results_;
  std::vector<Program> programs_;
};

/// The programs of one function that need several launches.
class SplitStore {
 public:
  /// The maximum number; beyond it the least recently used is dropped.
  static constexpr std::size_t most = 8;

  /// The one that serves a program, or null.
  SplitProgram* find(const Request& request);
  /// Adds a program that must be cut, or whose numbers must be read before it
  /// runs; null if neither applies. Throws Error like parts_in_order.
  SplitProgram* add(const Request& request);

 private:
  std::vector<std::unique_ptr<SplitProgram>> programs_;  // the latest last
};

}  // namespace fuse
