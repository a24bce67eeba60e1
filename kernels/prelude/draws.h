// Random bits for the elements of tensors: 16 for each, as the lower ones of a float
// whose other bits are zero, as stochastic_half() takes them. They are those of a key
// and a stream, which each tensor has, and of where the element stands in its tensor,
// in row-major order, and of nothing else: each number of Philox serves eight
// neighbours. The library includes this, and its text is part of kernels that draw.
#ifndef FUSEBOOK_DRAWS_H
#define FUSEBOOK_DRAWS_H

#ifndef FUSEBOOK_HALF_H  // a kernel has no files to include
#include "fusebook/prelude/half.h"
#endif
#ifndef FUSEBOOK_PHILOX_H
#include "fusebook/prelude/philox.h"
#endif

namespace fuse {
namespace FUSE_DEVICE {

constexpr int drawn_together = 8;

// Key and stream are whole numbers below 2^53.
struct RandomStream {
  u64 key;
  u64 number;

  FUSE_FN RandomBits bits_of_eight(u64 position) const {
    return philox(key, number, position / drawn_together);
  }
};

FUSE_FN RandomStream random_stream(double key, double number) {
  return {u64(key), u64(number)};
}

// Of neighbour k of eight.
FUSE_FN unsigned drawn_of(const RandomBits& bits, unsigned k) {
  return bits.words[k / 2] >> k % 2 * 16 & 0xffffU;
}

#if !defined(FUSE_GPU)  // gpu_draws.h has threads for the same
// For n elements `stride` apart.
inline void draw_elements(const RandomStream stream, u64 position, i64 stride,
                          i64 n, float* to) {
  RandomBits bits = stream.bits_of_eight(position);
  u64 known = position / drawn_together;
  for (i64 i = 0; i < n; ++i, position += u64(stride)) {
    const u64 eight = position / drawn_together;
    if (eight != known) bits = stream.bits_of_eight(position);
    known = eight;
    to[i] = float_of(drawn_of(bits, unsigned(position % drawn_together)));
  }
}
#endif

}  // namespace FUSE_DEVICE
}  // namespace fuse

#endif  // FUSEBOOK_DRAWS_H
