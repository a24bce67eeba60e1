// How many floats a register holds, and some of the words of 16 bits in it. In
// front of lanes.h, which includes this.
#ifndef FUSEBOOK_LANE_WORDS_H
#define FUSEBOOK_LANE_WORDS_H

#ifndef FUSEBOOK_HALF_H  // a kernel has no files to include
#include "fusebook/prelude/half.h"
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__F16C__)
#define FUSE_LANES 16
#elif defined(__AVX2__) && defined(__F16C__)
#define FUSE_LANES 8
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FUSE_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FUSE_SANITIZED
#endif
#endif
#if FUSE_LANES == 16 && defined(__AVX512VL__) && !defined(FUSE_SANITIZED)
#define FUSE_MASKS
#endif

#if defined(FUSE_LANES)
namespace fuse {
namespace FUSE_DEVICE {

// Of a whole vector, and of one that is half as wide.
typedef short Words __attribute__((vector_size(4 * FUSE_LANES)));
typedef short FewerWords __attribute__((vector_size(2 * FUSE_LANES)));

// Some of the 16-bit words of a vector: the rest of a tensor, with too few elements
// for all lanes. An access with a mask touches nothing behind them, but sanitizers
// do not see it.
#if defined(FUSE_MASKS)
#if defined(__clang__)
typedef Words WordsAt;
typedef FewerWords FewerWordsAt;
#else
typedef short WordsAt;
typedef short FewerWordsAt;
#endif
FUSE_FN unsigned first_words(i64 n) { return (1U << n) - 1U; }

template <class Vector>
FUSE_FN Vector load_words(const void* from, i64 n) {
  if constexpr (sizeof(Vector) == sizeof(Words)) {
    return Vector(__builtin_ia32_loaddquhi512_mask(
        static_cast<const WordsAt*>(from), Words{}, first_words(n)));
  } else {
    return Vector(
        __builtin_ia32_loaddquhi256_mask(static_cast<const FewerWordsAt*>(from),
                                         FewerWords{}, bits16(first_words(n))));
  }
}
template <class Vector>
FUSE_FN void store_words(const Vector& vector, void* to, i64 n) {
  if constexpr (sizeof(Vector) == sizeof(Words)) {
    __builtin_ia32_storedquhi512_mask(static_cast<WordsAt*>(to), Words(vector),
                                      first_words(n));
  } else {
    __builtin_ia32_storedquhi256_mask(static_cast<FewerWordsAt*>(to),
                                      FewerWords(vector),
                                      bits16(first_words(n)));
  }
}
#else
// The empty instruction keeps compilers from optimizing the loop more than it is
// worth.
typedef bits16 Word __attribute__((aligned(1), may_alias));
inline __attribute__((noinline)) void copy_words(void* to, const void* from,
                                                 i64 n) {
  for (i64 k = 0; k < n; ++k) {
    static_cast<Word*>(to)[k] = static_cast<const Word*>(from)[k];
    asm volatile("" ::: "memory");
  }
}
template <class Vector>
FUSE_FN Vector load_words(const void* from, i64 n) {
  Vector vector = {};
  copy_words(&vector, from, n);
  return vector;
}
template <class Vector>
FUSE_FN void store_words(const Vector& vector, void* to, i64 n) {
  copy_words(to, &vector, n);
}
#endif

// In an element, of which a vector holds FUSE_LANES at most.
template <class T>
constexpr i64 words_of = sizeof(T) / 2;

}  // namespace FUSE_DEVICE
}  // namespace fuse

#endif  // FUSE_LANES
#endif  // FUSEBOOK_LANE_WORDS_H
