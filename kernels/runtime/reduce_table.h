#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fusebook/ir/plan.h"
#include "fusebook/prelude/reductions.h"

namespace fuse {

/// A range of indices.
struct IndexRange {
  i64 begin = 0;
  i64 end = 0;
};

/// What a plan reduces, phase by phase: tensors, their chunks, the shares of the
/// threads, and where the results go. All places are indices of one array of
/// doubles that the kernel owns.
class ReduceTable {
 public:
  /// A phase that reduces, as ranges of what this table holds.
  struct Phase {
    IndexRange lists;
    IndexRange tensors;
    IndexRange chunks;
    IndexRange parts;
  };

  /// Lays everything out, for given lists; `set_rows` comes for each tensor
  /// later, in the same order.
  void build(const Plan& plan, const Program& program, int threads);
  /// Where the next tensor's addresses start, with how many elements a line has,
  /// and the row of its columns.
  void set_rows(i64 pointers, i64 line, i64 columns);

  bool empty() const { return phases_.empty(); }
  std::span<const Phase> phases() const { return phases_; }
  std::span<const ReducedTensor> tensors() const { return tensors_; }
  std::span<const ReducedChunk> chunks() const { return chunks_; }
  std::span<const ReducedList> lists() const { return lists_; }
  /// Ranges of chunks, each for one thread.
  std::span<const IndexRange> parts() const { return parts_; }
  /// The reductions of a list, in order.
  std::span<const OpCode> operations(std::size_t list) const {
    return operations_[list];
  }
  /// How many doubles there must be.
  std::size_t numbers() const { return std::size_t(numbers_); }
  /// Where a result is, for a tensor: of a reduction of the program, or behind
  /// those a number that it keeps.
  i64 place(std::size_t result, std::size_t tensor) const {
    const Place& at = places_[result];
    return at.first + (at.total ? 0 : i64(tensor));
  }

 private:
  struct Place {
    i64 first = -1;
    bool total = false;
  };

  void add_list(const Plan& plan, const Program& program,
                const Instance& instance);
  void add_tensor(i64 numel, i64 tensor, const ReducedList& list, int body);
  void share_out_chunks(IndexRange chunks, int threads);

  std::vector<Phase> phases_;
  std::vector<ReducedTensor> tensors_;
  std::vector<ReducedChunk> chunks_;
  std::vector<ReducedList> lists_;
  std::vector<IndexRange> parts_;
  std::vector<std::vector<OpCode>> operations_;
  std::vector<Place> places_;
  i64 numbers_ = 0;
  std::size_t next_ = 0;  // tensor whose rows come next
};

/// The slot of an instance that says how many tensors there are, and how large:
/// one of the program's, of elements if there is one.
std::size_t sized_slot(const Body& body, const Instance& instance,
                       const Program& program);

/// Ends a phase whose chunks are done: joins their numbers to those of tensors,
/// and these to totals.
void join_results(const ReduceTable& table, const ReduceTable::Phase& phase,
                  double* numbers);

}  // namespace fuse
