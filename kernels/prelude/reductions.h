// How the elements of tensors are reduced to numbers, in the one order that
// sums.h describes: the library includes this for the CPU, and its text stands
// in front of the bodies of every kernel that reduces.
//
// A tensor is cut into chunks of `reduction_chunk` elements, counted in
// row-major order whatever its strides are. Element i of a chunk belongs to lane
// i % reduction_lanes; each lane takes its elements in order, as float64. Then
// the upper half of the lanes is joined to the lower one, until one is left. The
// numbers of the chunks are joined in the same way, as one chunk, and so are
// those of the tensors of a list.
#ifndef FUSEBOOK_REDUCTIONS_H
#define FUSEBOOK_REDUCTIONS_H

#ifndef FUSEBOOK_LAUNCH_H  // a kernel has no files to include
#include "fusebook/prelude/launch.h"
#endif

namespace fuse {

constexpr int reduction_lanes = 256;
constexpr i64 reduction_chunk = 8192;

// A tensor that a body reduces. Its results go to Reducing::numbers: that of
// reduction k to `results + k * apart` and, if it has several chunks, the number
// of chunk c to `partials + k * chunks + c` before.
struct ReducedTensor {
  i64 pointers;  // where its addresses start; with strides, its first line's
  i64 line;      // elements of a line
  i64 numel;
  i64 chunks;
  i64 partials;
  i64 results;
  i64 apart;
  int body;
  int instance;  // the row of columns that it reads
  int list;
};

// A chunk of a tensor: elements [number, number + 1) * reduction_chunk.
struct ReducedChunk {
  i64 tensor;
  i64 number;
};

// Tensors that are reduced by the same operations. Reduction k of `totals` (bit
// k) goes on to one number for all of them, behind the results of tensors.
struct ReducedList {
  i64 results;
  i64 count;
  unsigned totals;
};

// What a kernel is given to reduce; `table` has its addresses and scalars.
struct Reducing {
  Launch table;
  const ReducedTensor* tensors;
  const ReducedChunk* chunks;
  double* numbers;
};

// The chunks that a phase reduces, on a GPU.
struct PhaseChunks {
  i64 begin;
  i64 end;
};

// Where the blocks of a grid wait for each other; see gpu_barrier.h. Zero at first.
struct GridBarrier {
  unsigned arrived;
  unsigned generation;
};

// The same on a GPU, in the memory of the device. A launch runs the phases
// [phase_begin, phase_end) that reduce, and where it `stores` the last one after
// them, which is `launch`; between two of them all blocks meet at the barrier, for
// which they all have to be alive. Tickets count the chunks of each tensor that are
// done, and behind them the tensors of each list; they are zero between launches.
struct PhasedLaunch {
  GpuLaunch launch;
  const ReducedTensor* tensors;
  const ReducedChunk* chunks;
  const ReducedList* lists;
  double* numbers;
  unsigned* tickets;
  i64 tensor_count;
  const PhaseChunks* phases;
  GridBarrier* barrier;
  int phase_begin;
  int phase_end;
  bool stores;
};

namespace FUSE_DEVICE {

// What a reduction starts from, what it takes of an element, and how two
// numbers become one.
struct Sum {
  static FUSE_FN double first() { return 0; }
  static FUSE_FN double term(double x) { return x; }
  static FUSE_FN double join(double a, double b) { return a + b; }
};

struct SumOfSquares {
  static FUSE_FN double first() { return 0; }
  static FUSE_FN double term(double x) { return x * x; }
  static FUSE_FN double join(double a, double b) { return a + b; }
};

struct Amax {
  static FUSE_FN double first() { return -FUSE_INFINITY; }
  static FUSE_FN double term(double x) { return x; }
  static FUSE_FN double join(double a, double b) {
    return (a != a || a > b) ? a : b;
  }
};

#if !defined(FUSE_GPU)  // gpu_reductions.h has a thread for each lane
// How many lanes so many elements need, a power of two. Joining one of the others
// to them would change nothing: a lane starts from what changes nothing.
FUSE_FN int used_lanes(i64 elements) {
  int used = 1;
  while (used < reduction_lanes && used < elements) used *= 2;
  return used;
}

// NOLINTBEGIN(clang-analyzer-core.*): lanes below `used` have numbers.
template <class How>
FUSE_FN double join_lanes(How how, double* lanes, int used) {
  for (int half = used / 2; half > 0; half /= 2) {
    FUSE_INDEPENDENT
    for (int lane = 0; lane < half; ++lane) {
      lanes[lane] = how.join(lanes[lane], lanes[lane + half]);
    }
  }
  return lanes[0];
}

// Joins numbers as if they were the elements of one chunk.
template <class How>
FUSE_FN double join_numbers(How how, const double* numbers, i64 count) {
  if (count == 1) return numbers[0];
  const int used = used_lanes(count);
  double lanes[reduction_lanes];
  for (int lane = 0; lane < used; ++lane) lanes[lane] = how.first();
  for (i64 i = 0; i < count; ++i) {
    double& lane = lanes[i % reduction_lanes];
    lane = how.join(lane, numbers[i]);
  }
  return join_lanes(how, lanes, used);
}
// NOLINTEND(clang-analyzer-core.*)
#endif

}  // namespace FUSE_DEVICE
}  // namespace fuse

#endif  // FUSEBOOK_REDUCTIONS_H
