// What a generated GPU kernel has besides where elements lie in blocks. Behind
// gpu_loops.h and blocks.h; never included by the library itself, only its text is.
#ifndef FUSEBOOK_GPU_BLOCKS_H
#define FUSEBOOK_GPU_BLOCKS_H

namespace fuse {
namespace FUSE_DEVICE {

// What a block of threads computes at once. `gpu_chunk` is a multiple.
constexpr int held_blocks = 4;
constexpr int held_size = held_blocks * int(block_size);

// The largest number of each block of elements, of those that four neighbouring
// threads have found: `own` becomes that of block `part`, in all threads.
FUSE_FN unsigned largest_of(const unsigned* found, int part) {
  unsigned largest = 0;
  for (int k = 0; k < 8; ++k) {
    const unsigned size = found[part * 8 + k];
    largest = size > largest ? size : largest;
  }
  return largest;
}

// `held_blocks` blocks of a list while their elements are computed; see
// cpu_blocks.h.
template <class Codes>
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
    __shared__ unsigned found[held_blocks * 64];
    __shared__ unsigned joined[held_blocks * 8];
    const int thread = int(threadIdx.x);
    const int part = thread / 64;
    unsigned largest = 0;
    for (int k = 0; k < 4; ++k) {
      const int i = part * int(block_size) + k * 64 + thread % 64;
      const unsigned size = i < n ? finite_size<Codes>(next[i]) : 0U;
      largest = size > largest ? size : largest;
    }
    found[thread] = largest;
    __syncthreads();
    if (thread < held_blocks * 8) joined[thread] = largest_of(found, thread);
    __syncthreads();
    const float scale = scale_of<Codes>(largest_of(joined, part));
    const i64 block = first / block_size + part;
    if (thread % 64 == 0 && part * int(block_size) < n) {
      *all.scale(block) = scale;
    }
    const float factor = Codes::top / scale;
    for (int k = 0; k < 4; ++k) {
      const int i = part * int(block_size) + k * 64 + thread % 64;
      if (i >= n) break;
      all.codes(block)[i % int(block_size)] =
          encode_any<Codes>(next[i], factor);
    }
  }
};

// What BlockRunner calls where lists lie in blocks: it has the numbers of a tensor
// as its own, so that this fits better than the one of gpu_loops.h. Everything is
// read before the first scale is stored.
template <class Body>
  requires(Body::coded > 0)
FUSE_FN void run_elements(typename Body::PerTensor& t, void* const* pointers,
                          i64 begin, i64 end) {
  __shared__ float room[Body::coded * held_size];
  const typename Body::Pointers at(pointers);
  for (i64 first = begin; first < end; first += held_size) {
    const i64 rest = end - first;
    const int n = rest < held_size ? int(rest) : held_size;
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
