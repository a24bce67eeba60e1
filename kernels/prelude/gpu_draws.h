// Lists of positions in a kernel for a GPU, and the work of a block of threads for
// bodies that have them; see cpu_draws.h. Behind draws.h and gpu_loops.h; never
// included by the library itself, only its text is.
#ifndef FUSEBOOK_GPU_DRAWS_H
#define FUSEBOOK_GPU_DRAWS_H

namespace fuse {
namespace FUSE_DEVICE {

// What is drawn for a pack of neighbours, of the same eight: in twos, as halves of
// a register.
template <int count>
struct DrawnPack {
  u32 twos[count / 2];

  FUSE_FN float value(int k) const {
    return float_of(twos[k / 2] >> k % 2 * 16 & 0xffffU);
  }
};

struct Draws {
  u64 first;
  i64 stride;
  RandomStream stream;

  FUSE_FN explicit Draws(void* position, i64 apart = 1)
      : first(reinterpret_cast<u64>(position)), stride(apart), stream() {}

  FUSE_FN void begin(const RandomStream of) { stream = of; }

  FUSE_FN Draws operator+(i64 n) const {
    Draws later = *this;
    later.first += u64(n * stride);
    return later;
  }

  FUSE_FN float operator[](i64 i) const {
    const u64 position = first + u64(i * stride);
    const unsigned k = unsigned(position % drawn_together);
    const RandomBits bits = stream.bits_of_eight(position);
    const u32 low = k / 2 % 2 == 0 ? bits.words[0] : bits.words[1];
    const u32 high = k / 2 % 2 == 0 ? bits.words[2] : bits.words[3];
    return float_of((k < 4 ? low : high) >> k % 2 * 16 & 0xffffU);
  }

  template <int count>
  FUSE_FN bool aligned(i64 i) const {
    return (first + u64(i)) % count == 0;
  }
  // For elements [i, i + count), where they are aligned.
  template <int count>
  FUSE_FN DrawnPack<count> pack(i64 i) const {
    const u64 position = first + u64(i);
    const unsigned begin = unsigned(position % drawn_together) / 2;
    const RandomBits bits = stream.bits_of_eight(position);
    DrawnPack<count> made;
    for (unsigned k = 0; k < count / 2; ++k) {
      made.twos[k] = bits.words[k];
      for (unsigned other = k + count / 2; other < 4; other += count / 2) {
        if (begin + k == other) made.twos[k] = bits.words[other];
      }
    }
    return made;
  }
};

// What BlockRunner calls for bodies that draw, but have no blocks.
template <class Body>
FUSE_FN void run_drawing(const typename Body::PerTensor& t,
                         const Launch& launch, const Chunk& chunk) {
  void* const* const pointers = launch.pointers + chunk.pointers;
  if constexpr (requires { typename Body::Lines; }) {
    typename Body::Lines at(pointers, launch.strides + chunk.pointers);
    if (!at.dense()) {
      Body::begin_draws(at, t, pointers);
      run_single<Body>(t, at, chunk.begin, chunk.end);
      return;
    }
  }
  typename Body::Pointers at(pointers);
  Body::begin_draws(at, t, pointers);
  i64 whole = chunk.begin;
  if (Body::aligned(at, whole)) {
    whole += (chunk.end - whole) / Body::pack * Body::pack;
    run_packs<Body>(t, at, chunk.begin, whole);
  }
  run_single<Body>(t, at, whole, chunk.end);
}

}  // namespace FUSE_DEVICE
}  // namespace fuse

#endif  // FUSEBOOK_GPU_DRAWS_H
