#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fusebook/ir/plan.h"
#include "fusebook/layout/collapse_dims.h"
#include "fusebook/prelude/launch.h"
#include "fusebook/runtime/bound_lists.h"
#include "fusebook/runtime/moved_lists.h"
#include "fusebook/runtime/reduce_table.h"
#include "fusebook/runtime/table_parts.h"
#include "fusebook/support/function_ref.h"

namespace fuse {

/// A run of addresses in a table, by index.
struct AddressSpan {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Memory for so many doubles, where the results of reductions will be. It stays
/// valid as long as what provides it.
using NumberMemory = FunctionRef<double*(std::size_t count)>;

/// The table of a plan for given lists of tensors: one row per tensor with its
/// addresses (one row per line if lists are strided), and the shares of the
/// threads.
class AddressTable {
 public:
  /// How the lists of a program differ from those of this table; another number
  /// of threads also requires another table.
  Change compare(const Program& program, int threads) const;
  /// Throws Error if a stored tensor overlaps another one; then the table is
  /// empty.
  void build(const Plan& plan, const Program& program, int threads,
             NumberMemory memory);
  /// Replaces the addresses of tensors that have moved, if nothing else has
  /// changed. Skips what has not moved. Throws Error like `build`; then the
  /// table is unchanged.
  void move(const Plan& plan, const Program& program);
  /// Takes new ids of lists in the same memory.
  void rename(const Program& program) { bound_.rename(program.lists()); }
  /// Forgets the table before the last move, which still exists elsewhere.
  void forget_moves() { moved_from_ = 0; }

  bool empty() const { return bound_.empty(); }
  std::span<const Row> rows() const { return rows_; }
  std::span<void* const> pointers() const { return pointers_; }
  /// Parallel to the addresses; empty if no tensor is strided.
  std::span<const i64> strides() const {
    return strided_ ? std::span<const i64>(strides_) : std::span<const i64>();
  }
  /// Where the columns of each instance begin, followed by the end: one row for
  /// all its tensors, or one for each (see Instance::by_tensor).
  std::span<const i64> column_rows() const { return column_rows_; }
  /// The shares of the last phase.
  const TableParts& parts() const { return parts_; }
  /// What the phases before it reduce, and where its numbers are.
  const ReduceTable& reductions() const { return reductions_; }
  double* numbers() const { return numbers_; }
  /// The first row of the last phase, and of its tensors.
  std::size_t first_row() const { return first_row_; }
  std::span<const std::int64_t> phase_bytes() const { return phase_bytes_; }
  bool coincident() const { return coincident_; }
  std::uint64_t version() const { return version_; }
  /// The version before the last move, and the addresses it changed; 0 after
  /// any other change.
  std::uint64_t moved_from() const { return moved_from_; }
  AddressSpan moved() const { return moved_; }

 private:
  // Where a list of the program appears in the rows of an instance.
  struct Use {
    std::size_t list;
    std::size_t instance;
    std::size_t slot;   // index in the body
    std::size_t width;  // number of slots in the body
    bool stored;
    Rate rate;
  };

  void gather(const Plan& plan, const Program& program);
  void gather_instance(const Plan& plan, const Program& program,
                       std::size_t instance);
  void* address_of(const Program& program, std::int32_t slot,
                   std::size_t e) const;
  void add_tensor(const Row& row, const Instance& bound, const Program& program,
                  std::size_t e);
  void add_lines(const Row& row, const Instance& bound, const Body& body,
                 const Program& program, std::size_t e);
  bool is_line(std::size_t row) const;
  void begin_phase(std::size_t phase);
  void share_out_rows(int threads);

  void find_uses(const Plan& plan, const Program& program);
  std::span<const Use> uses_of(std::size_t list) const;
  bool moved_apart(const Program& program);
  void move_list(const Use& use, void* const* from, const ListView& to);
  void move_lines(const Use& use, void* const* from, const ListView& to);
  void widen_moved(std::size_t begin, std::size_t end);

  BoundLists bound_;
  std::uint64_t version_ = 0;
  std::uint64_t moved_from_ = 0;
  AddressSpan moved_;
  int threads_ = 0;
  std::vector<Row> rows_;
  std::vector<void*> pointers_;
  bool strided_ = false;
  std::vector<i64> strides_;  // one per pointer if some body is strided
  std::vector<i64> column_rows_;
  LineCutter cutter_;
  std::vector<Layout> layouts_;  // for the tensors of one entry
  TableParts parts_;
  ReduceTable reductions_;
  double* numbers_ = nullptr;
  std::size_t first_row_ = 0;
  std::vector<std::int64_t> phase_bytes_;  // loaded and stored
  bool coincident_ = false;

  // Used by moves.
  std::vector<std::size_t> tensor_rows_;     // first row of each tensor
  std::vector<std::size_t> instance_first_;  // first tensor of each instance
  std::vector<Use> uses_;                    // grouped by list
  std::vector<std::size_t> first_use_;       // for each list
  MovedLists moved_lists_;
  std::vector<MovedLists::Moved> moved_now_;
};

}  // namespace fuse
