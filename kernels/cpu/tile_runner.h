#pragma once

#include <algorithm>
#include <vector>

#include "fusebook/cpu/tile_program.h"
#include "fusebook/ir/plan.h"
#include "fusebook/prelude/launch.h"

namespace fuse {

class TrafficCounter;

/// Runs rows of one body tile by tile; one per thread. Keeps its memory, so
/// that launches after the first allocate nothing.
class TileRunner {
 public:
  /// `body` and its two lowerings (see make_tile_program) must outlive this.
  TileRunner(const Body& body, const TileProgram& direct,
             const TileProgram& careful);

  /// Call before the rows of a launch: computes what they all share.
  /// `coincident` as in Table.
  void start(const Launch& launch, bool coincident);
  /// Runs elements [begin, end) of a row and, if `whole`, its per-tensor
  /// stores.
  void run(const Row& row, i64 begin, i64 end, bool whole);
  /// Reduces one chunk of a tensor.
  void reduce(const Reducing& work, const ReducedTensor& tensor, i64 chunk);
  /// Does the per-tensor stores of a row whose elements are done.
  void finish(const Row& row);

 private:
  // One tile of the wider type. The extra line keeps the tiles of several
  // buffers out of the same cache sets.
  struct alignas(64) Buffer {
    double values[tile_size];
    double apart[8];
  };
  // The same, or the floats of a block.
  struct alignas(64) Staged {
    double values[std::max<i64>(tile_size, largest_block / 2)];
    double apart[8];
  };

  void prepare(i64 pointers, i64 instance);
  bool read_inputs(i64 instance);
  void stage(i64 pointers);
  void run_tile(i64 first, i64 n);
  void run_steps(i64 first, i64 n);
  void want_next(i64 first, std::size_t step) const;
  void reduce_line(i64 first, i64 n, i64 element);
  void take_tile(i64 first, i64 n, i64 lane);
  double* lanes_of(std::size_t reduction) {
    return lanes_.data() + reduction * std::size_t(reduction_lanes);
  }
  bool is_staged() const;
  bool is_staged(std::size_t slot) const;
  void* staged(std::size_t slot, i64 first);
  void encode_held(std::size_t slot, i64 first, i64 n);
  void gather(i64 first, i64 n);
  void draw(std::size_t slot, i64 first, i64 n);
  void scatter(i64 first, i64 n);
  const void* tensor_of(std::size_t slot) const;
  void count_tile(TrafficCounter& counter, i64 n) const;
  void store_entry() const;
  void* address(Place place, i64 first);

  const Body& body_;
  const TileProgram& direct_;
  const TileProgram& careful_;
  const TileProgram* tiles_ = nullptr;
  Launch launch_{};
  void* const* pointers_ = nullptr;  // of the current row
  const i64* strides_ = nullptr;     // if some of its elements are strided
  const Row* row_ = nullptr;         // null while a tensor is reduced
  i64 end_ = 0;                      // of its elements; 0 without a row
  i64 reduced_ = 0;                  // where its addresses start
  bool ready_ = false;               // values_ are those of some row
  std::vector<double> values_;       // of the stages before the elements
  std::vector<double> scalars_;      // each holds one value of its dtype
  std::vector<Buffer> buffers_;
  std::vector<Staged> staged_;  // for each slot, if some are not read in place
  std::vector<double> lanes_;   // of each reduction
  std::vector<std::size_t> lists_;  // slots whose elements may be read in place
};

}  // namespace fuse
