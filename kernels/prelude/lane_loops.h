// The loops around generated code that runs in lanes. Behind cpu_loops.h and lanes.h;
// never included by the library itself, only its text is.
#ifndef FUSEBOOK_LANE_LOOPS_H
#define FUSEBOOK_LANE_LOOPS_H

namespace fuse::FUSE_DEVICE {

// What a body in two parts keeps of a value until it completes the element.
FUSE_FN float kept(float value) { return value; }
template <class Float>
using Kept = decltype(kept(Float()));
FUSE_FN float restored(float value) { return value; }

#if defined(FUSE_LANES)
// Without what memory has of it: that is stored already. g++ would copy structs of
// both by way of memory.
FUSE_FN Floats::Values kept(Floats floats) { return floats.value; }
// The empty instruction hides where they come from: g++ would take apart, lane by
// lane, what the previous step has left.
FUSE_FN Floats restored(Floats::Values values) {
  asm("" : "+v"(values));
  return values;
}

struct LaneLoops {
  static constexpr int count = Floats::count;

  // Where registers have 16 lanes, words of 16 bits move in one instruction.
  template <class Body>
  static constexpr bool in_pairs =
      FUSE_LANES == 8 && requires { Body::in_pairs; };

  // The loop over contiguous elements [begin, end). Two sets of lanes take turns
  // where there are registers for both, or they are a pair: divisions and roots of
  // one leave time for the other. A long body has enough to do meanwhile.
  template <class Body>
  static FUSE_LOOP void run(const typename Body::PerTensor entry,
                            const typename Body::Pointers at, i64 begin,
                            i64 end) {
    constexpr bool fits = FUSE_LANES == 16 || in_pairs<Body>;
    constexpr int sets = fits && !requires { Body::is_long; } ? 2 : 1;
    i64 i = whole_steps<Body, sets>(entry, at, begin, end);
    for (; i < end; i += count) {
      step<Body>(entry, at, i, end - i < count ? end - i : count);
    }
  }

  // The same where no lane stays empty.
  template <class Body>
  static FUSE_FN void run_all(const typename Body::PerTensor& entry,
                              const typename Body::Pointers& at, i64 begin,
                              i64 end) {
    whole_steps<Body, 1>(entry, at, begin, end);
  }

  // Steps that leave no lane empty. Returns where they end. Of a body in two parts,
  // the next elements are begun before these are completed: a processor holds only
  // so many operations that wait, and once all of them wait for divisions and roots,
  // nothing else can start.
  template <class Body, int sets>
  static FUSE_FN i64 whole_steps(const typename Body::PerTensor& entry,
                                 const typename Body::Pointers& at, i64 begin,
                                 i64 end) {
    constexpr i64 length = sets * count;
    i64 i = begin;
    constexpr bool is_long = requires { Body::is_long; };
    if constexpr (!is_long &&
                  requires { typename Body::template Begun<Floats>; }) {
      if (i + length > end) return i;
      Turn<Body, sets> turn;
      turn.begin(entry, at, i);
      for (i += length; i + length <= end; i += length) {
        Turn<Body, sets> next;
        next.begin(entry, at, i);
        turn.complete(entry, at, i - length);
        turn = next;
      }
      turn.complete(entry, at, i - length);
    } else {
      FUSE_INDEPENDENT
      for (; i + length <= end; i += length) steps<Body, sets>(entry, at, i);
    }
    return i;
  }

  // What a body in two parts has begun for one or two sets of lanes.
  template <class Body, int sets>
  struct Turn {
    typedef typename Body::PerTensor PerTensor;
    typedef typename Body::Pointers Pointers;
    typedef typename Body::template Elements<Floats> Elements;
    static constexpr bool both = sets == 2;
    static constexpr bool pair = both && in_pairs<Body>;

    typename Body::template Begun<Floats> first = {}, second = {};

    FUSE_FN void begin(const PerTensor& entry, const Pointers& at, i64 i) {
      Elements x, y;
      if constexpr (pair) {
        Body::load(x, y, at, i);
      } else {
        Body::load(x, at, i, count);
        if constexpr (both) Body::load(y, at, i + count, count);
      }
      first = Body::begin(x, entry);
      if constexpr (both) second = Body::begin(y, entry);
      if constexpr (pair) {
        Body::store_begun(x, y, at, i);
      } else {
        Body::store_begun(x, at, i, count);
        if constexpr (both) Body::store_begun(y, at, i + count, count);
      }
    }
    FUSE_FN void complete(const PerTensor& entry, const Pointers& at,
                          i64 i) const {
      Elements x, y;
      Body::complete(first, x, entry);
      if constexpr (both) Body::complete(second, y, entry);
      if constexpr (pair) {
        Body::store_completed(x, y, at, i);
      } else {
        Body::store_completed(x, at, i, count);
        if constexpr (both) Body::store_completed(y, at, i + count, count);
      }
    }
  };

  template <class Body, int sets>
  static FUSE_FN void steps(const typename Body::PerTensor& entry,
                            const typename Body::Pointers& at, i64 i) {
    typename Body::template Elements<Floats> x[sets];
    constexpr bool pair = sets == 2 && in_pairs<Body>;
    if constexpr (pair) {
      Body::load(x[0], x[1], at, i);
    } else {
      FUSE_UNROLLED
      for (int k = 0; k < sets; ++k) {
        Body::load(x[k], at, i + k * count, count);
      }
    }
    FUSE_UNROLLED
    for (int k = 0; k < sets; ++k) Body::compute(x[k], entry);
    if constexpr (pair) {
      Body::store(x[0], x[1], at, i);
    } else {
      FUSE_UNROLLED
      for (int k = 0; k < sets; ++k) {
        Body::store(x[k], at, i + k * count, count);
      }
    }
  }

  template <class Body>
  static FUSE_FN void step(const typename Body::PerTensor& entry,
                           const typename Body::Pointers& at, i64 i, i64 n) {
    typename Body::template Elements<Floats> x;
    Body::load(x, at, i, n);
    Body::compute(x, entry);
    Body::store(x, at, i, n);
  }
};
#endif  // FUSE_LANES

}  // namespace fuse::FUSE_DEVICE

#endif  // FUSEBOOK_LANE_LOOPS_H
