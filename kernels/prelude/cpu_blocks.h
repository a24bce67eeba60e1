// The loop around generated code whose elements lie in blocks, on a CPU;
// gpu_blocks.h has that of a GPU. Behind cpu_loops.h (and lanes.h, where elements
// run in lanes) and blocks.h; never included by the library itself, only its text
// is.
#ifndef FUSEBOOK_CPU_BLOCKS_H
#define FUSEBOOK_CPU_BLOCKS_H

namespace fuse::FUSE_DEVICE {

// A block of a list while its elements are computed: they are decoded as they are
// read, and what they become waits in `next` for the scale that they will share.
template <class Codes>
struct HeldBlock {
  Blocks<Codes> all;
  i64 block;
  const bits8* codes;
  float unit;
  float* next;

  FUSE_FN HeldBlock(const Blocks<Codes> list, i64 first, float* room)
      : all(list),
        block(first / block_size),
        codes(list.codes(block)),
        unit(list.unit(block)),
        next(room) {}

  FUSE_FN float operator[](i64 i) const {
    return Codes::decode(codes[i], unit);
  }
  // What a loop in lanes reads instead.
  FUSE_FN void decode(i64 n) const { decode_block(all, block, n, next); }
  FUSE_FN void encode(i64 n) const { encode_block(next, n, all, block); }
};

// A body whose elements are those of a block.
template <class Body>
struct HeldBody : Body {
  typedef typename Body::Held Pointers;
};

// The loop over elements [begin, end), block by block. `Body` is generated: beside
// what every body has, `coded`, how many lists lie in blocks, `Held`, and encode.
// Where elements run in lanes, decode and `InLanes` besides.
struct BlockByBlock {
  template <class Body>
  static FUSE_FN void run(const typename Body::PerTensor& entry,
                          const typename Body::Pointers& at, i64 begin,
                          i64 end) {
    i64 first = begin;
    for (; first + block_size <= end; first += block_size) {
      run_block<Body>(entry, at, first, block_size);
    }
    if (first < end) run_last<Body>(entry, at, first, end - first);
  }

 private:
  template <class Body>
  static inline __attribute__((noinline)) void run_last(
      const typename Body::PerTensor& entry, const typename Body::Pointers& at,
      i64 first, i64 n) {
    run_block<Body>(entry, at, first, n);
  }

  template <class Body>
  static FUSE_FN void run_block(const typename Body::PerTensor& entry,
                                const typename Body::Pointers& at, i64 first,
                                i64 n) {
    alignas(64) float room[Body::coded * block_size];
    const typename Body::Held held(at, first, room);
    if constexpr (requires { typename Body::InLanes; }) {
      Body::decode(held, n);
      Body::InLanes::template run<HeldBody<Body>>(entry, held, 0, n);
    } else {
      run_at<Body>(entry, held, 0, n);
    }
    Body::encode(held, n);
  }
};

}  // namespace fuse::FUSE_DEVICE

#endif  // FUSEBOOK_CPU_BLOCKS_H
