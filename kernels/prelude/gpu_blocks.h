// What a generated GPU kernel has besides where elements lie in blocks. Behind
// gpu_loops.h and blocks.h; never included by the library itself, only its text is.
#ifndef FUSEBOOK_GPU_BLOCKS_H
#define FUSEBOOK_GPU_BLOCKS_H

namespace fuse {
namespace FUSE_DEVICE {

// How many elements a block of threads computes at once, if no block of elements is
// larger. `gpu_chunk` is a multiple.
constexpr int held_size = 1024;

// The largest of so many numbers that threads have found.
template <int count>
FUSE_FN unsigned largest_of(const unsigned* found, int part) {
  unsigned largest = 0;
  for (int k = 0; k < count; ++k) {
    const unsigned size = found[part * count + k];
    largest = size > largest ? size : largest;
  }
  return largest;
}

// Whole blocks of a list while their elements are computed; see cpu_blocks.h.
template <class Codes, int held = held_size>
struct HeldBlock {
  Blocks<Codes> all;
  i64 first;
  float* next;

  FUSE_FN HeldBlock(const Blocks<Codes>& list, i64 from, float* room)
      : all(list), first(from), next(room) {}

  FUSE_FN float operator[](i64 i) const { return all[first + i]; }

  // Of n elements, by all threads: each takes neighbours four apart from those of
  // the next, as far as their block reaches.
  FUSE_FN void encode(int n) const {
    constexpr int size = int(Codes::block);
    constexpr int each = held / 256;  // there are so many threads
    constexpr int threads = size / each;
    constexpr int some = threads < 8 ? threads : 8;
    __shared__ unsigned found[256];
    __shared__ unsigned joined[256 / some];
    const int thread = int(threadIdx.x);
    const int part = thread / threads;
    unsigned largest = 0;
    for (int k = 0; k < each; ++k) {
      const int i = part * size + k * threads + thread % threads;
      const unsigned own = i < n ? finite_size<Codes>(next[i]) : 0U;
      largest = own > largest ? own : largest;
    }
    found[thread] = largest;
    __syncthreads();
    if (thread < 256 / some) joined[thread] = largest_of<some>(found, thread);
    __syncthreads();
    const unsigned whole = largest_of<threads / some>(joined, part);
    const float scale = scale_of<Codes>(whole);
    const i64 block = first / Codes::block + part;
    if (thread % threads == 0 && part * size < n) {
      *all.scale(block) = scale;
    }
    const float factor = Codes::top / scale;
    for (int k = 0; k < each; ++k) {
      const int i = part * size + k * threads + thread % threads;
      if (i >= n) break;
      all.codes(block)[i % size] = encode_any<Codes>(next[i], factor);
    }
  }
};

template <class Body>
FUSE_FN constexpr int held_by() {
  if constexpr (requires { Body::held_size; }) {
    return Body::held_size;
  } else {
    return held_size;
  }
}

// What BlockRunner calls where lists lie in blocks: it has the numbers of a tensor
// as its own, so that this fits better than the one of gpu_loops.h. Everything is
// read before the first scale is stored.
template <class Body>
  requires(Body::coded > 0)
FUSE_FN void run_elements(typename Body::PerTensor& t, void* const* pointers,
                          i64 begin, i64 end) {
  constexpr int size = held_by<Body>();
  __shared__ float room[Body::coded * size];
  typename Body::Pointers at(pointers);
  if constexpr (requires { Body::draws; }) {
    Body::begin_draws(at, t, pointers);
  }
  for (i64 first = begin; first < end; first += size) {
    const i64 rest = end - first;
    const int n = rest < size ? int(rest) : size;
    const typename Body::Held held(at, first, room);
    run_single<Body>(t, held, 0, n);
    __syncthreads();
    Body::encode(held, n);
    __syncthreads();
  }
}

}  // namespace FUSE_DEVICE
}  // namespace fuse

#endif  // FUSEBOOK_GPU_BLOCKS_H
