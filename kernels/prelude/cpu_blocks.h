// The loop around generated code whose elements lie in blocks, on a CPU;
// gpu_blocks.h has that of a GPU. Behind cpu_loops.h and blocks.h (and lanes.h and
// lane_blocks.h, where elements run in lanes); never included by the library
// itself, only its text is.
#ifndef FUSEBOOK_CPU_BLOCKS_H
#define FUSEBOOK_CPU_BLOCKS_H

namespace fuse::FUSE_DEVICE {

// A block of a list while its elements are computed: they are decoded as they are
// read, and what they become waits in `next` for the scale that they will share.
template <class Codes>
struct HeldBlock {
  Blocks<Codes> all;
  i64 block;
  bits8* codes;
  float unit;
  float factor;
  float* next;

  FUSE_FN HeldBlock(const Blocks<Codes> list, i64 first, float* room)
      : all(list),
        block(first / block_size),
        codes(list.codes(block)),
        unit(list.unit(block)),
        factor(),
        next(room) {}

  FUSE_FN float operator[](i64 i) const {
    return Codes::decode(codes[i], unit);
  }
#if defined(FUSE_LANES)
  // What a loop in lanes reads instead: elements [i, i + n).
  FUSE_FN Floats lanes(i64 i, i64 n) const {
    return decode(Codes(), LaneCodes::load(codes + i, n), unit);
  }
#endif
  // The first n elements, all at once.
  FUSE_FN void encode(i64 n) const { encode_block(next, n, all, block); }

  // Or, for a whole block of finite elements: first its scale, then elements.
  FUSE_FN bool measure() {
    const unsigned largest = largest_size<Codes>(next, block_size);
    if (largest >= no_size) return false;
    const float scale = scale_of<Codes>(largest);
    *all.scale(block) = scale;
    factor = Codes::top / scale;
    return true;
  }
  FUSE_FN void encode(i64 i, i64 n) const {
#if defined(FUSE_LANES)
    encode_lanes<Codes>(next + i, n, factor, codes + i);
#else
    encode_run<Codes>(next + i, n, factor, codes + i);
#endif
  }
};

// A body whose elements are those of a block.
template <class Body>
struct HeldBody : Body {
  typedef typename Body::Held Pointers;
};

// The loop over elements [begin, end), block by block. `Body` is generated: beside
// what every body has, `coded`, how many lists lie in blocks, `Held`, measure and
// encode. Where elements run in lanes, `InLanes` besides.
//
// The elements of a block are encoded while those of the next one are computed, a
// group of each in turn: one waits for divisions and roots, which leave the units
// free that the other needs.
struct BlockByBlock {
  static constexpr i64 group = 128;

  template <class Body>
  static FUSE_FN void run(const typename Body::PerTensor& entry,
                          const typename Body::Pointers& at, i64 begin,
                          i64 end) {
    const i64 last = begin + (end - begin) / block_size * block_size;
    if (begin < last) run_whole<Body>(entry, at, begin, last);
    if (last < end) run_last<Body>(entry, at, last, end - last);
  }

 private:
  template <class Body>
  static FUSE_FN void run_whole(const typename Body::PerTensor& entry,
                                const typename Body::Pointers& at, i64 begin,
                                i64 end) {
    alignas(64) float rooms[2][Body::coded * block_size];
    typename Body::Held held(at, begin, rooms[0]);
    run_block<Body, false>(entry, held, held);
    bool waiting = measured<Body>(held);
    int room = 0;
    for (i64 first = begin + block_size; first < end; first += block_size) {
      room = 1 - room;
      const typename Body::Held next(at, first, rooms[room]);
      if (waiting) {
        run_block<Body, true>(entry, next, held);
      } else {
        run_block<Body, false>(entry, next, held);
      }
      held = next;
      waiting = measured<Body>(held);
    }
    if (waiting) Body::encode(held, 0, block_size);
  }

  // Whether the block has its scale alone; else it is encoded.
  template <class Body>
  static FUSE_FN bool measured(typename Body::Held& held) {
    if (Body::measure(held)) return true;
    Body::encode(held, block_size);
    return false;
  }

  // Both by value: codes are characters, which might be anything in memory.
  template <class Body, bool encode_before>
  static FUSE_FN void run_block(const typename Body::PerTensor entry,
                                const typename Body::Held held,
                                const typename Body::Held before) {
    for (i64 i = 0; i < block_size; i += group) {
      run_group<Body>(entry, held, i, group);
      if constexpr (encode_before) Body::encode(before, i, group);
    }
  }

  template <class Body>
  static inline __attribute__((noinline)) void run_last(
      const typename Body::PerTensor& entry, const typename Body::Pointers& at,
      i64 first, i64 n) {
    alignas(64) float room[Body::coded * block_size];
    const typename Body::Held held(at, first, room);
    run_group<Body>(entry, held, 0, n);
    Body::encode(held, n);
  }

  template <class Body>
  static FUSE_FN void run_group(const typename Body::PerTensor& entry,
                                const typename Body::Held held, i64 i, i64 n) {
    if constexpr (requires { typename Body::InLanes; }) {
      Body::InLanes::template run<HeldBody<Body>>(entry, held, i, i + n);
    } else {
      run_at<Body>(entry, held, i, i + n);
    }
  }
};

}  // namespace fuse::FUSE_DEVICE

#endif  // FUSEBOOK_CPU_BLOCKS_H
