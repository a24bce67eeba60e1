// The one order in which the elements of a tensor are summed. The library
// includes this for the CPU, and its text, after that of halves.h, is part of
// the kernel that sums on a GPU (gpu_sums.h): one text for both, so that both
// round alike, with any number of threads.
//
// A tensor is cut into chunks. Element i of a chunk belongs to lane
// i % sum_lanes; each lane adds its elements in order, as float64, from 0. Then
// the upper half of the lanes is added to the lower one, until one is left. The
// sums of the chunks are added in the same way, as one chunk.
#ifndef FUSEBOOK_SUMS_H
#define FUSEBOOK_SUMS_H

#ifndef FUSEBOOK_HALVES_H  // a kernel has no files to include
#include "fusebook/prelude/halves.h"
#endif

namespace fuse {

constexpr int sum_lanes = 256;
constexpr i64 sum_chunk_size = 8192;

// What to sum, all in the memory of the device that sums: `count` elements at
// `a`, or if `b` is not null the squares of their differences from those at
// `b`. `dtype` is the number of a DType. The sum of chunk k goes to sums[k].
struct SumWork {
  int dtype;
  const void* a;
  const void* b;
  i64 count;
  i64 chunk;
  double* sums;
};

namespace FUSE_DEVICE {

template <class T>
struct Summands {
  const Unaligned<T>* values;

  FUSE_FN double operator()(i64 i) const {
    return double(Memory<T>::load(values[i]));
  }
};

template <class T>
struct SquaredDifferences {
  Summands<T> left;
  Summands<T> right;

  FUSE_FN double operator()(i64 i) const {
    const double difference = left(i) - right(i);
    return difference * difference;
  }
};

// A `Team` works on one chunk: all(visit) calls visit(lane) for all lanes,
// each(n, visit) for those below n; own(lane) is the accumulator of a lane.
// After share(), every lane can read a lane's sum as part(lane); sync()
// separates two rounds of that. `rows`, how many elements a lane loads at once,
// is up to the team and does not affect the order.
template <class Team, class Value>
FUSE_FN double sum_in_lanes(Team& team, const Value value, i64 begin, i64 end) {
  team.all([&](int lane) { team.own(lane) = 0; });
  constexpr int rows = Team::rows;
  i64 first = begin;
  for (; first + rows * sum_lanes <= end; first += rows * sum_lanes) {
    // Independent loads.
    team.all([&](int lane) {
      double next[rows];
      for (int k = 0; k < rows; ++k) {
        next[k] = value(first + k * sum_lanes + lane);
      }
      double sum = team.own(lane);
      for (int k = 0; k < rows; ++k) sum += next[k];
      team.own(lane) = sum;
    });
  }
  for (; first + sum_lanes <= end; first += sum_lanes) {
    team.all([&](int lane) { team.own(lane) += value(first + lane); });
  }
  team.each(int(end - first),
            [&](int lane) { team.own(lane) += value(first + lane); });
  team.share();
  for (int half = sum_lanes / 2; half > 0; half /= 2) {
    team.each(half,
              [&](int lane) { team.part(lane) += team.part(lane + half); });
    team.sync();
  }
  return team.part(0);
}

template <class T, class Team>
FUSE_FN double sum_of_type(Team& team, const SumWork& work, i64 begin,
                           i64 end) {
  const Summands<T> a = {static_cast<const Unaligned<T>*>(work.a)};
  if (work.b == nullptr) return sum_in_lanes(team, a, begin, end);
  const Summands<T> b = {static_cast<const Unaligned<T>*>(work.b)};
  return sum_in_lanes(team, SquaredDifferences<T>{a, b}, begin, end);
}

// The sum of one chunk, in all lanes of the team.
template <class Team>
FUSE_FN double sum_chunk(Team& team, const SumWork& work, i64 chunk) {
  const i64 begin = chunk * work.chunk;
  const i64 rest = work.count - begin;
  const i64 end = begin + (rest < work.chunk ? rest : work.chunk);
  switch (work.dtype) {
    case 0:
      return sum_of_type<float>(team, work, begin, end);
    case 1:
      return sum_of_type<double>(team, work, begin, end);
    case 2:
      return sum_of_type<f16>(team, work, begin, end);
    case 3:
      return sum_of_type<bf16>(team, work, begin, end);
    default:
      return sum_of_type<i16>(team, work, begin, end);
  }
}

}  // namespace FUSE_DEVICE
}  // namespace fuse

#endif  // FUSEBOOK_SUMS_H
