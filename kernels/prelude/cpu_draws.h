// Lists of positions in a kernel for a CPU, whose elements are random bits as they
// are read, and the loops around bodies that have them. Behind draws.h and
// cpu_loops.h (and lane_loops.h, where elements run in lanes); never included by the
// library itself, only its text is.
#ifndef FUSEBOOK_CPU_DRAWS_H
#define FUSEBOOK_CPU_DRAWS_H

namespace fuse::FUSE_DEVICE {

// How many elements of a loop in lanes are drawn for together.
constexpr i64 drawn_group = 512;

// What was drawn last: for neighbours from `begin` on, which stands at a multiple
// of eight. A group that does not begin there touches one number more of Philox;
// there is room for whole registers of them, and to read a register behind.
struct DrawnBits {
  u64 begin = ~u64(0) / 2;  // none
  alignas(64) bits16 halves[drawn_group + 8 * drawn_together];
};

struct Draws {
  u64 first;
  i64 stride;
  RandomStream stream = {};
  DrawnBits* drawn = nullptr;

  FUSE_FN explicit Draws(void* position, i64 apart = 1)
      : first(reinterpret_cast<u64>(position)), stride(apart) {}

  FUSE_FN void begin(const RandomStream of, DrawnBits& room) {
    stream = of;
    drawn = &room;
  }

  // From element n on.
  FUSE_FN Draws operator+(i64 n) const {
    Draws later = *this;
    later.first += u64(n * stride);
    return later;
  }

  FUSE_FN float operator[](i64 i) const {
    const u64 position = first + u64(i * stride);
    if (position - drawn->begin >= drawn_together) draw_eight(position);
    return float_of(drawn->halves[position - drawn->begin]);
  }

  void draw_eight(u64 position) const {
    const RandomBits bits = stream.bits_of_eight(position);
    drawn->begin = position / drawn_together * drawn_together;
    for (int k = 0; k < drawn_together; ++k) {
      drawn->halves[k] = bits16(drawn_of(bits, unsigned(k)));
    }
  }

#if defined(FUSE_LANES)
  typedef unsigned long long Longs __attribute__((vector_size(4 * FUSE_LANES)));
  static constexpr int at_once = FUSE_LANES / 2;  // numbers of Philox

  // Of the lower halves.
  static FUSE_FN Longs product(Longs a, Longs b) {
#if defined(__clang__)
    return (a & 0xffffffffU) * (b & 0xffffffffU);
#else
    typedef int Ints __attribute__((vector_size(4 * FUSE_LANES)));
#if FUSE_LANES == 16
    typedef long long Signed __attribute__((vector_size(4 * FUSE_LANES)));
    return Longs(
        __builtin_ia32_pmuludq512_mask(Ints(a), Ints(b), Signed{}, -1));
#else
    return Longs(__builtin_ia32_pmuludq256(Ints(a), Ints(b)));
#endif
#endif
  }

  // Philox in each lane: its words are the lower halves, what is above them
  // counts for nothing.
  FUSE_FN void draw_lanes(u64 eight, bits16* to) const {
    Longs c0 = counts() + eight;
    Longs c1 = c0 >> 32;
    Longs c2 = Longs{} + stream.number;
    Longs c3 = Longs{} + (stream.number >> 32);
    const Longs m0 = Longs{} + 0xD2511F53U;
    const Longs m1 = Longs{} + 0xCD9E8D57U;
    u32 k0 = u32(stream.key), k1 = u32(stream.key >> 32);
    FUSE_UNROLLED
    for (int round = 0; round < 10; ++round) {
      const Longs a = product(c0, m0);
      const Longs b = product(c2, m1);
      c0 = b >> 32 ^ c1 ^ u64(k0);
      c1 = b;
      c2 = a >> 32 ^ c3 ^ u64(k1);
      c3 = a;
      k0 += 0x9E3779B9U;
      k1 += 0xBB67AE85U;
    }
    const Longs firsts = (c0 & 0xffffffffU) | c1 << 32;
    const Longs seconds = (c2 & 0xffffffffU) | c3 << 32;
    const Longs in_order[2] = {alternating(firsts, seconds, 0),
                               alternating(firsts, seconds, at_once / 2)};
    FUSE_BUILTIN(memcpy)(to, in_order, sizeof(in_order));
  }

#if FUSE_LANES == 16
  static FUSE_FN Longs counts() { return Longs{0, 1, 2, 3, 4, 5, 6, 7}; }
#else
  static FUSE_FN Longs counts() { return Longs{0, 1, 2, 3}; }
#endif
  // Lanes from `first` on, of a and b in turn.
  static FUSE_FN Longs alternating(Longs a, Longs b, u64 first) {
#if defined(__clang__)
    Longs both;
    FUSE_UNROLLED
    for (u64 k = 0; k < at_once; ++k)
      both[k] = (k % 2 == 0 ? a : b)[first + k / 2];
    return both;
#else
    const Longs half = counts() / 2 + first;
    return __builtin_shuffle(a, b, half + counts() % 2 * u64(at_once));
#endif
  }

  // Draws for elements [i, i + n) of a group.
  FUSE_FN void draw(i64 i, i64 n) const {
    const u64 position = first + u64(i);
    const u64 eight = position / drawn_together;
    const i64 end = i64((position + u64(n) - 1) / drawn_together - eight) + 1;
    drawn->begin = eight * drawn_together;
    for (i64 k = 0; k < end; k += at_once) {
      draw_lanes(eight + u64(k), drawn->halves + k * drawn_together);
    }
  }

  // What was drawn for elements from i on.
  FUSE_FN Floats lanes(i64 i) const {
    typedef Floats::Halves Halves;
    const bits16* const from = drawn->halves + (first + u64(i) - drawn->begin);
    return Floats::Values(
        Floats::widened(Floats::load<Halves>(from, Floats::count)));
  }
#endif
};

#if defined(FUSE_LANES)
// The loop in lanes, of bodies that draw.
struct DrawnLanes {
  template <class Body>
  static FUSE_LOOP void run(const typename Body::PerTensor entry,
                            const typename Body::Pointers at, i64 begin,
                            i64 end) {
    for (i64 i = begin; i < end; i += drawn_group) {
      const i64 rest = end - i;
      const i64 n = rest < drawn_group ? rest : drawn_group;
      want_ahead<Body>(at, i, n, end);
      Body::draw(at, i, n);
      LaneLoops::run<Body>(entry, at, i, i + n);
    }
  }

  // The same where no lane stays empty, for no more than a group.
  template <class Body>
  static FUSE_FN void run_all(const typename Body::PerTensor& entry,
                              const typename Body::Pointers& at, i64 begin,
                              i64 end) {
    Body::draw(at, begin, end - begin);
    LaneLoops::run_all<Body>(entry, at, begin, end);
  }
};
#endif

// What Runner calls for bodies that draw.
template <class Body>
FUSE_FN void run_drawing(const typename Body::PerTensor entry,
                         const Launch& launch, const Row& row, i64 begin,
                         i64 end) {
  void* const* const pointers = launch.pointers + row.pointers;
  DrawnBits drawn;
  if constexpr (requires { typename Body::Lines; }) {
    typename Body::Lines at(pointers, launch.strides + row.pointers);
    if (!at.dense()) {
      Body::begin_draws(at, entry, pointers, drawn);
      run_at<Body>(entry, at, begin, end);
      return;
    }
  }
  typename Body::Pointers at(pointers);
  Body::begin_draws(at, entry, pointers, drawn);
  if constexpr (requires { typename Body::Lanes; }) {
    Body::Lanes::template run<Body>(entry, at, begin, end);
  } else {
    run_at<Body>(entry, at, begin, end);
  }
}

}  // namespace fuse::FUSE_DEVICE

#endif  // FUSEBOOK_CPU_DRAWS_H
