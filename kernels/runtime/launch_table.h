#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "fusebook/ir/plan.h"
#include "fusebook/prelude/launch.h"
#include "fusebook/runtime/address_table.h"

namespace fuse {

/// The table a launch reads: one row a tensor with its addresses (one row a line
/// of it, where lists are strided), and the shares of the threads. Made of a
/// plan and the lists of a program. Where tensors only lie elsewhere, their
/// addresses are replaced; lists that come back find the table that they had
/// before.
class Table {
 public:
  /// Tables that are kept, the one in use included.
  static constexpr std::size_t most_kept = 4;

  /// Gathers addresses and scalars. Returns true when a table had to be built,
  /// or addresses replaced in one. Throws Error when a stored tensor overlaps
  /// another one.
  bool bind(const Plan& plan, const Program& program, int threads);

  /// True when `bind` would do either.
  bool lists_changed(const Program& program, int threads) const;

  /// What a kernel is given; valid until the next bind.
  Launch launch() const;
  std::span<const Part> parts() const { return now_.parts().parts; }
  /// Rows that several parts share, and the first line of each tensor that has
  /// several; their per-tensor stores come last.
  std::span<const i64> split_rows() const { return now_.parts().split_rows; }
  std::span<const Row> rows() const { return now_.rows(); }
  /// The addresses, scalars and columns that `launch` points to.
  std::span<void* const> pointers() const { return now_.pointers(); }
  /// Parallel to the addresses; empty where no tensor is strided.
  std::span<const i64> strides() const { return now_.strides(); }
  std::span<const double> args() const { return args_; }
  std::span<const double> columns() const { return columns_; }
  /// Another number whenever rows and addresses may have changed; no two tables
  /// of different content have the same. 0: nothing was bound yet.
  std::uint64_t version() const { return now_.version(); }
  /// The version that only addresses of `moved` distinguish this one from; 0 if
  /// there is none.
  std::uint64_t moved_from() const { return now_.moved_from(); }
  AddressSpan moved() const { return now_.moved(); }
  /// Number of tensors, which may have several rows each.
  i64 tensors() const { return rows().empty() ? 0 : rows().back().entry + 1; }
  /// Bytes one launch loads and stores.
  std::int64_t bytes() const { return now_.bytes(); }
  /// True when two lists share tensors; loads then must come before stores.
  bool coincident() const { return now_.coincident(); }

 private:
  bool find_kept(const Program& program, int threads, std::uint64_t content);
  void replace(const Plan& plan, const Program& program, int threads,
               std::uint64_t content);
  void move(const Plan& plan, const Program& program, std::uint64_t content);
  void exchange(const Plan& plan, const Program& program, int threads);
  bool came_back(std::uint64_t content) const;
  void keep_current();
  void gather_scalars(const Plan& plan, const Program& program);
  void gather_columns(std::span<const ScalarLeaf> scalars,
                      std::span<const std::int32_t> columns, i64 begin,
                      i64 end);

  // A table and a number for the memory it is over.
  struct Kept {
    AddressTable table;
    std::uint64_t content = 0;
  };

  AddressTable now_;
  std::uint64_t content_ = 0;
  std::vector<Kept> kept_;  // others, the one used last comes first
  std::array<std::uint64_t, 8> seen_{};  // what was bound before, in a ring
  std::size_t next_seen_ = 0;
  std::vector<double> args_;
  std::vector<double> columns_;
  i64 column_count_ = 0;
};

}  // namespace fuse
