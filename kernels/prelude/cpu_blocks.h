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
        block(first / Codes::block),
        codes(list.codes(block)),
        unit(list.unit(block)),
        factor(),
        next(room) {}

  FUSE_FN float operator[](i64 i) const {
    return Codes::decode(codes[i], unit);
  }
#if defined(FUSE_LANES)
  // What a loop in lanes reads and stores instead: elements [i, i + n). The largest
  // size of each lane is at hand then, without another look at the elements.
  mutable Floats::Bits largest = {};
  FUSE_FN Floats lanes(i64 i, i64 n) const {
    return decode(Codes(), LaneCodes::load(codes + i, n), unit);
  }
  FUSE_FN void store(const Floats& x, i64 i, i64 n) const {
    x.store_float32(next + i, n);
    const Floats::Bits sizes = sizes_of(Codes(), x.value);
    largest = sizes > largest ? sizes : largest;
  }
#endif
  // The first n elements, all at once.
  FUSE_FN void encode(i64 n) const { encode_block(next, n, all, block); }

  // Or, for a whole block of finite elements: first its scale, then elements.
  FUSE_FN bool measure() {
    return set_scale(largest_size<Codes>(next, Codes::block));
  }
  // The same where a loop in lanes has stored it.
  FUSE_FN bool measure_lanes() {
#if defined(FUSE_LANES)
    return set_scale(largest_of(largest));
#else
    return measure();
#endif
  }
  FUSE_FN void encode(i64 i, i64 n) const {
#if defined(FUSE_LANES)
    encode_lanes<Codes>(next + i, n, factor, codes + i);
#else
    encode_run<Codes>(next + i, n, factor, codes + i);
#endif
  }

 private:
  FUSE_FN bool set_scale(unsigned size) {
    if (size >= no_size) return false;
    const float scale = scale_of<Codes>(size);
    *all.scale(block) = scale;
    factor = Codes::top / scale;
    return true;
  }
};

// The same for several blocks, which are smaller than what is computed at once.
template <class Codes, i64 size>
struct HeldBlocks {
  Blocks<Codes> all;
  i64 first;
  float* next;

  FUSE_FN HeldBlocks(const Blocks<Codes> list, i64 from, float* room)
      : all(list), first(from), next(room) {}

  FUSE_FN float operator[](i64 i) const { return all[first + i]; }
#if defined(FUSE_LANES)
  FUSE_FN Floats lanes(i64 i, i64 n) const {
    const i64 block = (first + i) / Codes::block;
    const bits8* const codes = all.codes(block) + i % Codes::block;
    return decode(Codes(), LaneCodes::load(codes, n), all.unit(block));
  }
  FUSE_FN void store(const Floats& x, i64 i, i64 n) const {
    x.store_float32(next + i, n);
  }
#endif
  FUSE_FN void encode(i64 n) const {
    for (i64 i = 0; i < n; i += Codes::block) {
      const i64 count = n - i < Codes::block ? n - i : Codes::block;
      encode_block(next + i, count, all, (first + i) / Codes::block);
    }
  }

  FUSE_FN bool measure() const {
    for (i64 i = 0; i < size; i += Codes::block) {
      const unsigned largest = largest_size<Codes>(next + i, Codes::block);
      if (largest >= no_size) return false;
      *all.scale((first + i) / Codes::block) = scale_of<Codes>(largest);
    }
    return true;
  }
  FUSE_FN bool measure_lanes() const { return measure(); }
  FUSE_FN void encode(i64 begin, i64 n) const {
    const i64 piece = n < Codes::block ? n : Codes::block;
    for (i64 i = begin; i < begin + n; i += piece) {
      const i64 block = (first + i) / Codes::block;
      const float factor = Codes::top / *all.scale(block);
      bits8* const codes = all.codes(block) + i % Codes::block;
#if defined(FUSE_LANES)
      encode_lanes<Codes>(next + i, piece, factor, codes);
#else
      encode_run<Codes>(next + i, piece, factor, codes);
#endif
    }
  }
};

// A body whose elements are those of a block.
template <class Body>
struct HeldBody : Body {
  typedef typename Body::Held Pointers;
  // A block that is held is in the cache.
  static FUSE_FN void want(const Pointers& /*at*/, i64 /*i*/) {}
};

// The same for the rest of a tensor, less than a block: it is computed like a long
// body, for which there is less code.
template <class Body>
struct LastBody : HeldBody<Body> {
  static constexpr bool is_long = true;
};

// Where the code of an element lies.
template <class Codes>
FUSE_FN const bits8* place_of(const Blocks<Codes> list, i64 i) {
  return list.codes(i / Codes::block) + i % Codes::block;
}

// The loop over elements [begin, end), block by block. `Body` is generated: beside
// what every body has, `coded`, how many lists lie in blocks, `Held`, measure and
// encode; `block_size`, where another number of elements is held at once. Where
// elements run in lanes, `InLanes` besides.
//
// The elements of a block are encoded while those of the next one are computed, a
// group of each in turn: one waits for divisions and roots, which leave the units
// free that the other needs.
struct BlockByBlock {
  static constexpr i64 group = 128;

  template <class Body>
  static FUSE_LOOP void run(const typename Body::PerTensor entry,
                            const typename Body::Pointers at, i64 begin,
                            i64 end) {
    constexpr i64 size = held_size<Body>();
    const i64 last = begin + (end - begin) / size * size;
    if (begin < last) run_whole<Body>(entry, at, begin, last);
    if (last < end) run_last<Body>(entry, at, last, end - last);
  }

 private:
  template <class Body>
  static FUSE_FN constexpr i64 held_size() {
    if constexpr (requires { Body::block_size; }) {
      return Body::block_size;
    } else {
      return block_size;
    }
  }

  template <class Body>
  static FUSE_FN void run_whole(const typename Body::PerTensor& entry,
                                const typename Body::Pointers& at, i64 begin,
                                i64 end) {
    constexpr i64 size = held_size<Body>();
    alignas(64) float rooms[2][Body::coded * size];
    typename Body::Held held(at, begin, rooms[1]);
    bool waiting = false;  // whether the codes of `held` are still to come
    int room = 0;
    for (i64 first = begin; first < end; first += size) {
      want_ahead<Body>(at, first, size, end);
      const typename Body::Held next(at, first, rooms[room]);
      held = run_block<Body>(entry, next, held, waiting);
      waiting = measured<Body>(held);
      room = 1 - room;
    }
    if (waiting) Body::encode(held, 0, size);
  }

  // Whether the block has its scale alone; else it is encoded.
  template <class Body>
  static FUSE_FN bool measured(typename Body::Held& held) {
    if (Body::measure(held)) return true;
    Body::encode(held, held_size<Body>());
    return false;
  }

  // Both by value: codes are characters, which might be anything in memory.
  template <class Body>
  static FUSE_FN typename Body::Held run_block(
      const typename Body::PerTensor entry, const typename Body::Held held,
      const typename Body::Held before, bool encode_before) {
    for (i64 i = 0; i < held_size<Body>(); i += group) {
      run_group<Body>(entry, held, i);
      if (encode_before) Body::encode(before, i, group);
    }
    return held;
  }

  template <class Body>
  static inline __attribute__((noinline)) void run_last(
      const typename Body::PerTensor& entry, const typename Body::Pointers& at,
      i64 first, i64 n) {
    alignas(64) float room[Body::coded * held_size<Body>()];
    const typename Body::Held held(at, first, room);
    if constexpr (requires { typename Body::InLanes; }) {
      Body::InLanes::template run<LastBody<Body>>(entry, held, 0, n);
    } else {
      run_at<Body>(entry, held, 0, n);
    }
    Body::encode(held, n);
  }

  template <class Body>
  static FUSE_FN void run_group(const typename Body::PerTensor& entry,
                                const typename Body::Held& held, i64 i) {
    if constexpr (requires { typename Body::InLanes; }) {
      Body::InLanes::template run_all<HeldBody<Body>>(entry, held, i,
                                                      i + group);
    } else {
      run_at<Body>(entry, held, i, i + group);
    }
  }
};

}  // namespace fuse::FUSE_DEVICE

#endif  // FUSEBOOK_CPU_BLOCKS_H
