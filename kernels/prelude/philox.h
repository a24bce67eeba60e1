// Random bits that are a function of a key and a counter: Philox 4x32-10 of
// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011). Any
// thread, tile or device can compute any of them independently, in any order.
#ifndef FUSEBOOK_PHILOX_H
#define FUSEBOOK_PHILOX_H

#ifndef FUSEBOOK_TARGET_H  // a kernel has no files to include
#include "fusebook/prelude/target.h"
#endif

namespace fuse {
namespace FUSE_DEVICE {

using u32 = unsigned int;
using u64 = unsigned long long;

struct RandomBits {
  u32 words[4];
};

// The 128 bits of one counter. `key` is a seed; `index` counts within a stream,
// and `stream` distinguishes the uses of one seed.
FUSE_FN RandomBits philox(u64 key, u64 stream, u64 index) {
  u32 c0 = u32(index), c1 = u32(index >> 32);
  u32 c2 = u32(stream), c3 = u32(stream >> 32);
  u32 k0 = u32(key), k1 = u32(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const u64 a = u64(0xD2511F53U) * c0;
    const u64 b = u64(0xCD9E8D57U) * c2;
    c0 = u32(b >> 32) ^ c1 ^ k0;
    c1 = u32(b);
    c2 = u32(a >> 32) ^ c3 ^ k1;
    c3 = u32(a);
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return {{c0, c1, c2, c3}};
}

}  // namespace FUSE_DEVICE
}  // namespace fuse

#endif  // FUSEBOOK_PHILOX_H
