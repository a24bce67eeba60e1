#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bound_lists.h"
#include "device.h"
#include "lines.h"
#include "plan.h"

namespace fuse {

/// A place between two elements: before `element` of row `row`.
struct Cut {
  i64 row = 0;
  i64 element = 0;
};

/// The table a launch reads: one row a tensor with its addresses (one row a line
/// of it, where lists are strided), and the shares of the threads. Built from a plan and the lists of a program; built
/// again only when the lists, or the number of threads, have changed.
class Table {
 public:
  /// Gathers addresses and scalars. Returns true when the table had to be
  /// built again. Throws Error when a stored tensor overlaps another one.
  bool bind(const Plan& plan, const Program& program, int threads);

  /// True when `bind` would build it again.
  bool lists_changed(const Program& program, int threads) const;

  /// What a kernel is given; valid until the next bind.
  Launch launch() const;
  std::span<const Part> parts() const { return parts_; }
  /// Rows that several parts share, and the first line of each tensor that has
  /// several; their per-tensor stores come last.
  std::span<const i64> split_rows() const { return split_rows_; }
  std::span<const Row> rows() const { return rows_; }
  /// The addresses, scalars and columns that `launch` points to.
  std::span<void* const> pointers() const { return pointers_; }
  /// Parallel to the addresses; empty where no tensor is strided.
  std::span<const i64> strides() const {
    return strided_ ? std::span<const i64>(strides_) : std::span<const i64>();
  }
  std::span<const double> args() const { return args_; }
  std::span<const double> columns() const { return columns_; }
  /// Another number whenever rows and addresses may have changed; no two tables
  /// of different content have the same. 0: nothing was bound yet.
  std::uint64_t version() const { return version_; }
  /// Number of tensors, which may have several rows each.
  i64 tensors() const { return rows_.empty() ? 0 : rows_.back().entry + 1; }
  /// Bytes one launch loads and stores.
  std::int64_t bytes() const { return bytes_; }
  /// True when two lists share tensors; loads then must come before stores.
  bool coincident() const { return coincident_; }

 private:
  void gather(const Plan& plan, const Program& program);
  void gather_instance(const Plan& plan, const Program& program,
                       std::size_t instance);
  void add_tensor(const Row& row, const Instance& bound, const Program& program,
                  std::size_t e);
  void add_lines(const Row& row, const Instance& bound, const Body& body,
                 const Program& program, std::size_t e);
  bool is_line(std::size_t row) const;
  void gather_scalars(const Plan& plan, const Program& program);
  void split(int threads);
  void add_part(const Cut& begin, const Cut& end);
  void finish_lines();

  BoundLists bound_;
  std::uint64_t version_ = 0;
  int threads_ = 0;
  std::vector<Row> rows_;
  std::vector<void*> pointers_;
  bool strided_ = false;
  std::vector<i64> strides_;  // one a pointer where some body is strided
  LineCutter cutter_;
  std::vector<Layout> layouts_;  // of the tensors of one entry
  std::vector<double> args_;
  std::vector<double> columns_;
  i64 column_count_ = 0;
  std::vector<Part> parts_;
  std::vector<i64> split_rows_;
  std::int64_t bytes_ = 0;
  bool coincident_ = false;
};

}  // namespace fuse
