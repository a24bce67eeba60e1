#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "fusebook/ir/plan.h"
#include "fusebook/prelude/launch.h"
#include "fusebook/runtime/address_table.h"

namespace fuse {

/// The table a launch reads: one row per tensor with its addresses (one row per
/// line if lists are strided), and the shares of the threads. Made from a plan
/// and the lists of a program. If tensors have only moved, their addresses are
/// replaced; lists that return find their previous table.
class Table {
 public:
  /// Number of tables kept, including the one in use.
  static constexpr std::size_t most_kept = 4;

  /// Collects addresses and scalars. Returns true if a table was built, or
  /// addresses in it were replaced. Throws Error if a stored tensor overlaps
  /// another one. `memory` is asked for the place of the results where the plan
  /// reduces; without it such a plan is an Error.
  bool bind(const Plan& plan, const Program& program, int threads,
            NumberMemory memory);
  bool bind(const Plan& plan, const Program& program, int threads);

  /// True if `bind` would do either.
  bool lists_changed(const Program& program, int threads) const;

  /// The arguments of a kernel; valid until the next bind.
  Launch launch() const;
  /// The shares of the last phase; the phases before it are `reductions`.
  std::span<const Part> parts() const { return now_.parts().parts; }
  /// Rows shared by several parts, and the first line of each tensor with
  /// several lines; their per-tensor stores come last.
  std::span<const i64> split_rows() const { return now_.parts().split_rows; }
  /// The rows of all phases; those of the last one start at `first_row`.
  std::span<const Row> rows() const { return now_.rows(); }
  std::size_t first_row() const { return now_.first_row(); }
  const ReduceTable& reductions() const { return now_.reductions(); }
  /// What the kernel is given for them.
  Reducing reducing() const;
  int phases() const { return int(now_.phase_bytes().size()); }
  /// The addresses, scalars and columns that `launch` points to.
  std::span<void* const> pointers() const { return now_.pointers(); }
  /// Parallel to the addresses; empty if no tensor is strided.
  std::span<const i64> strides() const { return now_.strides(); }
  std::span<const double> args() const { return args_; }
  std::span<const double> columns() const { return columns_; }
  /// Changes whenever rows or addresses may have changed; unique among tables
  /// with different contents. 0: nothing was bound yet.
  std::uint64_t version() const { return now_.version(); }
  /// The version that differs from this one only in the addresses of `moved`; 0
  /// if there is none.
  std::uint64_t moved_from() const { return now_.moved_from(); }
  AddressSpan moved() const { return now_.moved(); }
  /// Number of tensors in the last phase, each of which may have several rows.
  i64 tensors() const;
  /// Bytes loaded and stored by one launch, and by each of its phases.
  std::int64_t bytes() const;
  std::span<const std::int64_t> phase_bytes() const {
    return now_.phase_bytes();
  }
  /// True if two lists share tensors; loads must then precede stores.
  bool coincident() const { return now_.coincident(); }

 private:
  bool find_kept(const Program& program, int threads, std::uint64_t content);
  void replace(const Plan& plan, const Program& program, int threads,
               std::uint64_t content, NumberMemory memory);
  void move(const Plan& plan, const Program& program, std::uint64_t content);
  void exchange(const Plan& plan, const Program& program, int threads,
                NumberMemory memory);
  bool came_back(std::uint64_t content) const;
  void keep_current();
  void gather_scalars(const Plan& plan, const Program& program);
  void gather_columns(std::span<const ScalarLeaf> scalars,
                      std::span<const std::int32_t> columns, i64 begin,
                      i64 end);

  // A table and a hash of the memory it covers.
  struct Kept {
    AddressTable table;
    std::uint64_t content = 0;
  };

  AddressTable now_;
  std::uint64_t content_ = 0;
  std::vector<Kept> kept_;  // others, most recently used first
  // recently bound lists, as a ring buffer
  std::array<std::uint64_t, 8> seen_{};
  std::size_t next_seen_ = 0;
  std::vector<double> args_;
  std::vector<double> columns_;
  i64 column_count_ = 0;
};

}  // namespace fuse
