// The start of every generated kernel, which the prebuilt loops of the library
// share: target.h, launch.h, half.h, math.h and cpu_loops.h, one text for both,
// so that they cannot drift apart. A kernel includes nothing: it contains their
// texts one after the other, and without headers it compiles in a third of the
// time.
#ifndef FUSEBOOK_TARGET_H
#define FUSEBOOK_TARGET_H

// What the two kinds of compiler name differently. A GPU compiler has no
// builtins: it declares the functions of <math.h> itself.
#if defined(__CUDACC__)
#define FUSE_FN __device__ __forceinline__
#define FUSE_CALLED __device__ inline
#define FUSE_BUILTIN(name) ::name
#define FUSE_INFINITY __longlong_as_double(0x7ff0000000000000)
#define FUSE_NAN __longlong_as_double(0x7ff8000000000000)
#else
#define FUSE_FN inline __attribute__((always_inline))
#define FUSE_CALLED inline
#define FUSE_BUILTIN(name) __builtin_##name
#define FUSE_INFINITY __builtin_inf()
#define FUSE_NAN __builtin_nan("")
#endif
// Loops around bodies: parts of the kernel, unless what precedes this makes them
// functions that it calls.
#ifndef FUSE_LOOP
#define FUSE_LOOP FUSE_FN
#endif
#if defined(__clang__)
#define FUSE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define FUSE_INDEPENDENT _Pragma("GCC ivdep")
#endif

// Each instruction set has its own copy of everything below: the linker must
// never replace one with another.
#ifndef FUSE_DEVICE
#define FUSE_DEVICE device
#endif

namespace fuse {

using i64 = long long;

}  // namespace fuse

#endif  // FUSEBOOK_TARGET_H
