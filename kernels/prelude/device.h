// What every generated kernel starts with, and what the prebuilt loops of the
// library are made of: one text for both, so that they cannot drift apart.
// It includes nothing: a kernel without headers compiles in a third of the
// time.
#ifndef FUSEBOOK_DEVICE_H
#define FUSEBOOK_DEVICE_H

// What the two kinds of compiler call differently. A GPU's has no builtins: its
// functions of <math.h> are declared from the start.
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
#if defined(__clang__)
#define FUSE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define FUSE_INDEPENDENT _Pragma("GCC ivdep")
#endif

// Each instruction set has its own copy of everything below: the linker must
// never replace one by another.
#ifndef FUSE_DEVICE
#define FUSE_DEVICE device
#endif

namespace fuse {

using i64 = long long;

// Functions of the C library, with one operand and with two, under the names
// that they have there and in CUDA. A compiler must not see through them: it
// would fold and vectorise them to other bits than the library's. An operation
// may use each of them as math::name.
// clang-format off
#define FUSE_FUNCTIONS_1(F)                                        \
  F(exp) F(exp2) F(expm1) F(log) F(log2) F(log10) F(log1p)         \
  F(sin) F(cos) F(tan) F(asin) F(acos) F(atan)                     \
  F(sinh) F(cosh) F(tanh) F(asinh) F(acosh) F(atanh) F(erf) F(erfc)
#define FUSE_FUNCTIONS_2(F) F(pow) F(fmod) F(atan2) F(hypot)
// clang-format on

// The host's, filled once (calls.cpp).
struct Calls {
#define FUSE_CALL_1(name)     \
  float (*name##_f32)(float); \
  double (*name##_f64)(double);
#define FUSE_CALL_2(name)            \
  float (*name##_f32)(float, float); \
  double (*name##_f64)(double, double);
  FUSE_FUNCTIONS_1(FUSE_CALL_1)
  FUSE_FUNCTIONS_2(FUSE_CALL_2)
#undef FUSE_CALL_1
#undef FUSE_CALL_2
};

// One tensor of a list, in every slot of its body; or one line of it, where
// lists are strided. The lines of a tensor follow each other.
struct Row {
  i64 numel;
  i64 pointers;  // where its addresses start in Launch::pointers
  i64 entry;     // number of its tensor
  int body;      // which of the kernel's bodies updates it
  int instance;  // the row of columns that it reads
};

// A share of the work: from element `begin` of row `row` up to, not including,
// element `end` of row `last_row`. Rows in between are whole.
struct Part {
  i64 row;
  i64 begin;
  i64 last_row;
  i64 end;
};

// A share of a GPU's work: elements [begin, end) of one row, with what a block
// has to know of that row. `shares` are all that its tensor has; the one that
// read the per-tensor scalars last makes the per-tensor stores.
struct Chunk {
  i64 pointers;
  i64 entry;
  int body;
  int instance;
  i64 begin;
  i64 end;
  i64 shares;
};

// Everything a kernel is given.
struct Launch {
  const Row* rows;
  void* const* pointers;
  const double* args;     // scalars of the whole launch
  const double* columns;  // scalars of each instance, `column_count` apart
  i64 column_count;
  const i64*
      strides;  // of each pointer, in elements; null if all of them are 1
  i64 row_count;
};

// What a kernel on a GPU is given; all of it in the memory of the device.
// `tickets` counts the shares of each tensor that have read its scalars, and is
// zero between launches. Chunks say all about rows, so the table has none.
struct GpuLaunch {
  Launch table;
  const Chunk* chunks;
  i64 chunk_count;
  unsigned* tickets;
};

namespace FUSE_DEVICE {

#if defined(__CUDACC__)
// A GPU reads elements only where they are aligned to their size.
template <class T>
struct UnalignedOf {
  typedef T type;
};
#else
extern const Calls* calls;

// Elements may lie at any address.
typedef float unaligned_f32 __attribute__((aligned(1), may_alias));
typedef double unaligned_f64 __attribute__((aligned(1), may_alias));
template <class T>
struct UnalignedOf;
template <>
struct UnalignedOf<float> {
  typedef unaligned_f32 type;
};
template <>
struct UnalignedOf<double> {
  typedef unaligned_f64 type;
};
#endif
template <class T>
using Unaligned = typename UnalignedOf<T>::type;

// Numbers of 16 bits, of which no compiler here knows: float16 (IEEE binary16)
// and bfloat16 (the upper half of a float). Memory holds their bits; registers
// hold floats. All conversions round once, halves to even; numbers beyond the
// range become infinite, denormals stay, and a NaN stays one. They are written
// without branches, so that loops over them become vector code; lanes.h has the
// same in instructions made for it.
typedef unsigned short bits16;

FUSE_FN unsigned bits_of(float value) {
  unsigned bits;
  FUSE_BUILTIN(memcpy)(&bits, &value, sizeof(bits));
  return bits;
}
FUSE_FN float float_of(unsigned bits) {
  float value;
  FUSE_BUILTIN(memcpy)(&value, &bits, sizeof(value));
  return value;
}

// A double as a float whose last bit is set if anything was cut off. Rounding
// that to 11 bits or fewer gives what rounding the double itself would.
FUSE_FN float round_to_odd(double value) {
  const float nearest = float(value);
  const double back = double(nearest);
  const unsigned bits = bits_of(nearest);
  const bool too_large = FUSE_BUILTIN(fabs)(back) > FUSE_BUILTIN(fabs)(value);
  const unsigned odd = too_large ? bits - 1U : bits | 1U;
  const bool keep = back == value || value != value || (bits & 1U) != 0;
  return float_of(keep ? bits : odd);
}

FUSE_FN float from_bfloat16(bits16 bits) {
  return float_of(unsigned(bits) << 16);
}

// The bits of the float that holds the rounded number.
FUSE_FN unsigned rounded_bfloat16(float value) {
  const unsigned bits = bits_of(value);
  const unsigned rounded = bits + 0x7fffU + (bits >> 16 & 1U);
  return (value != value ? bits | 0x400000U : rounded) & 0xffff0000U;
}
FUSE_FN float round_bfloat16(float value) {
  return float_of(rounded_bfloat16(value));
}
FUSE_FN float round_bfloat16(double value) {
  return round_bfloat16(round_to_odd(value));
}
FUSE_FN bits16 to_bfloat16(float value) {
  return bits16(rounded_bfloat16(value) >> 16);
}
FUSE_FN bits16 to_bfloat16(double value) {
  return to_bfloat16(round_to_odd(value));
}

// Compilers make vector code of choices between numbers of one width alone, so
// all of these have 32 bits until the end.
FUSE_FN float from_float16(bits16 bits) {
  const unsigned sign = unsigned(bits) << 16 & 0x80000000U;
  const unsigned size = unsigned(bits) << 13 & 0x0fffe000U;
  const float denormal = float(int(size)) * 0x1p-37f;
  const unsigned infinite =
      size | (int(size) > 0x0f800000 ? 0x7fc00000U : 0x7f800000U);
  const unsigned ordinary = size + 0x38000000U;
  const unsigned large = int(size) >= 0x0f800000 ? infinite : ordinary;
  return float_of((int(size) < 0x00800000 ? bits_of(denormal) : large) | sign);
}

// Denormals of float16 are multiples of 2^-24, as are the floats from 0.5 on.
FUSE_FN float round_float16(float value) {
  const unsigned sign = bits_of(value) & 0x80000000U;
  const unsigned size = bits_of(value) & 0x7fffffffU;
  const float denormal = (float_of(size) + 0.5f) - 0.5f;
  const unsigned ordinary = (size + 0xfffU + (size >> 13 & 1U)) & 0xffffe000U;
  const unsigned finite = int(size) < 0x38800000 ? bits_of(denormal) : ordinary;
  const unsigned rounded = int(finite) >= 0x47800000 ? 0x7f800000U : finite;
  const unsigned nan = (size | 0x400000U) & 0xffffe000U;
  return float_of((int(size) > 0x7f800000 ? nan : rounded) | sign);
}
FUSE_FN float round_float16(double value) {
  return round_float16(round_to_odd(value));
}
FUSE_FN bits16 to_float16(float value) {
  const unsigned sign = bits_of(value) & 0x80000000U;
  const unsigned size = bits_of(value) & 0x7fffffffU;
  const unsigned denormal = (bits_of(float_of(size) + 0.5f) - 0x3f000000U)
                            << 16;
  const unsigned ordinary = (size - 0x38000000U + 0xfffU + (size >> 13 & 1U))
                            << 3;
  const unsigned finite = int(size) < 0x38800000 ? denormal : ordinary;
  const unsigned rounded = int(size) >= 0x47800000 ? 0x7c000000U : finite;
  const unsigned nan = 0x7e000000U | (size << 3 & 0x3ff0000U);
  return bits16(((int(size) > 0x7f800000 ? nan : rounded) | sign) >> 16);
}
FUSE_FN bits16 to_float16(double value) {
  return to_float16(round_to_odd(value));
}

#if defined(__CUDACC__)
typedef bits16 unaligned_bits16;
#else
typedef bits16 unaligned_bits16 __attribute__((aligned(1), may_alias));
#endif
// What stands for them where a type is asked for.
struct f16;
struct bf16;
template <>
struct UnalignedOf<f16> {
  typedef unaligned_bits16 type;
};
template <>
struct UnalignedOf<bf16> {
  typedef unaligned_bits16 type;
};

// A number in the memory of a type.
template <class T>
struct Memory {
  static FUSE_FN T load(T stored) { return stored; }
  template <class From>
  static FUSE_FN T store(From value) {
    return T(value);
  }
};
template <>
struct Memory<f16> {
  static FUSE_FN float load(bits16 stored) { return from_float16(stored); }
  template <class From>
  static FUSE_FN bits16 store(From value) {
    return to_float16(value);
  }
};
template <>
struct Memory<bf16> {
  static FUSE_FN float load(bits16 stored) { return from_bfloat16(stored); }
  template <class From>
  static FUSE_FN bits16 store(From value) {
    return to_bfloat16(value);
  }
};

template <class T>
FUSE_FN double load_scalar(const void* address) {
  return double(Memory<T>::load(*static_cast<const Unaligned<T>*>(address)));
}
template <class T>
FUSE_FN void store_scalar(void* address, double value) {
  *static_cast<Unaligned<T>*>(address) = Memory<T>::store(value);
}

namespace math {

FUSE_FN float abs(float a) { return FUSE_BUILTIN(fabsf)(a); }
FUSE_FN double abs(double a) { return FUSE_BUILTIN(fabs)(a); }
FUSE_FN float sqrt(float a) { return FUSE_BUILTIN(sqrtf)(a); }
FUSE_FN double sqrt(double a) { return FUSE_BUILTIN(sqrt)(a); }
FUSE_FN float floor(float a) { return FUSE_BUILTIN(floorf)(a); }
FUSE_FN double floor(double a) { return FUSE_BUILTIN(floor)(a); }
FUSE_FN float ceil(float a) { return FUSE_BUILTIN(ceilf)(a); }
FUSE_FN double ceil(double a) { return FUSE_BUILTIN(ceil)(a); }
FUSE_FN float rint(float a) { return FUSE_BUILTIN(rintf)(a); }
FUSE_FN double rint(double a) { return FUSE_BUILTIN(rint)(a); }
FUSE_FN float trunc(float a) { return FUSE_BUILTIN(truncf)(a); }
FUSE_FN double trunc(double a) { return FUSE_BUILTIN(trunc)(a); }
FUSE_FN float copysign(float a, float b) {
  return FUSE_BUILTIN(copysignf)(a, b);
}
FUSE_FN double copysign(double a, double b) {
  return FUSE_BUILTIN(copysign)(a, b);
}

#if defined(__CUDACC__)
#define FUSE_CALL_F32(name) ::name##f
#define FUSE_CALL_F64(name) ::name
#else
#define FUSE_CALL_F32(name) calls->name##_f32
#define FUSE_CALL_F64(name) calls->name##_f64
#endif
#define FUSE_FUNCTION_1(name)                                    \
  FUSE_FN float name(float a) { return FUSE_CALL_F32(name)(a); } \
  FUSE_FN double name(double a) { return FUSE_CALL_F64(name)(a); }
#define FUSE_FUNCTION_2(name)                                                \
  FUSE_FN float name(float a, float b) { return FUSE_CALL_F32(name)(a, b); } \
  FUSE_FN double name(double a, double b) { return FUSE_CALL_F64(name)(a, b); }
namespace library {
FUSE_FUNCTIONS_1(FUSE_FUNCTION_1)
FUSE_FUNCTIONS_2(FUSE_FUNCTION_2)
}  // namespace library
#undef FUSE_FUNCTION_1
#undef FUSE_FUNCTION_2
#undef FUSE_CALL_F32
#undef FUSE_CALL_F64

// All but pow, which is more below.
#define FUSE_FUNCTION(name) using library::name;
FUSE_FUNCTIONS_1(FUSE_FUNCTION)
FUSE_FUNCTION(fmod)
FUSE_FUNCTION(atan2)
FUSE_FUNCTION(hypot)
#undef FUSE_FUNCTION

// What is left of a division by `b`, in the half open range from 0 to `b`
// instead of with the sign of the dividend.
template <class T>
FUSE_FN T wrap(T rest, T b) {
  return rest != T(0) && (b < T(0)) != (rest < T(0)) ? rest + b : rest;
}

template <class T>
FUSE_FN T clamp(T a, T low, T high) {
  const T raised = (a != a || a > low) ? a : low;
  return (raised != raised || raised < high) ? raised : high;
}

// A product kept as the sum of two doubles: a power of thousands of factors
// then still rounds as if it had been computed exactly, within a unit in the
// last place (two among the very smallest numbers, where no low part fits).
struct TwoDoubles {
  double high;
  double low;
};

FUSE_FN bool is_finite(double a) { return abs(a) <= 0x1.fffffffffffffp+1023; }

FUSE_FN TwoDoubles multiply(TwoDoubles x, TwoDoubles y) {
  const double high = x.high * y.high;
  const bool ordinary = abs(high) > 0.0 && is_finite(high);
  const double low = FUSE_BUILTIN(fma)(x.high, y.high, -high) +
                     (x.high * y.low + x.low * y.high);
  const double sum = high + low;
  return {ordinary ? sum : high, ordinary ? low - (sum - high) : 0.0};
}

FUSE_FN TwoDoubles reciprocal(double x) {
  const double high = 1.0 / x;
  const bool ordinary = abs(high) >= 0x1p-960 && is_finite(high);
  if (!ordinary) return {high, 0.0};
  return {high, FUSE_BUILTIN(fma)(-high, x, 1.0) / x};
}

// base to a whole power, the same on every machine. Negative powers multiply
// reciprocals: dividing at the end would overflow where the result is small.
// On a GPU, where a whole block waits for one thread's power, the two products
// of a round overlap because nothing branches between them.
FUSE_CALLED double power(double base, i64 exponent) {
  TwoDoubles result = {1.0, 0.0};
  TwoDoubles square = exponent < 0 ? reciprocal(base) : TwoDoubles{base, 0.0};
  for (i64 rest = exponent < 0 ? -exponent : exponent; rest != 0; rest >>= 1) {
    const bool take = (rest & 1) != 0;
#if defined(FUSE_GPU)
    const TwoDoubles product = multiply(result, square);
    result = {take ? product.high : result.high,
              take ? product.low : result.low};
    square = multiply(square, square);
#else
    if (take) result = multiply(result, square);
    if (rest > 1) square = multiply(square, square);
#endif
  }
  return result.high;
}

// Whole exponents of this size go through `power`, all others to the host.
FUSE_FN bool is_whole(double exponent) {
  return exponent == rint(exponent) && abs(exponent) <= 2147483648.0;
}
FUSE_FN double pow(double base, double exponent) {
  if (!is_whole(exponent)) return library::pow(base, exponent);
  return power(base, i64(exponent));
}
FUSE_FN float pow(float base, float exponent) {
  if (!is_whole(exponent)) return library::pow(base, exponent);
  return float(power(base, i64(exponent)));
}

}  // namespace math

// Elements that lie `stride` apart.
template <class T>
struct Line {
  Unaligned<T>* address;
  i64 stride;

  FUSE_FN Line(void* first, i64 apart)
      : address(static_cast<Unaligned<T>*>(first)), stride(apart) {}
  FUSE_FN Unaligned<T>& operator[](i64 i) const { return address[i * stride]; }
};

#if !defined(FUSE_GPU)  // gpu_loops.h has other loops
// The loop over elements [begin, end) of one tensor, or of one line of it.
// `Body` is generated: Pointers, PerTensor, Element, load, compute, store; and
// Lines in place of Pointers where elements may lie apart.
template <class Body, class At>
FUSE_FN void run_at(const typename Body::PerTensor entry, const At at,
                    i64 begin, i64 end) {
  FUSE_INDEPENDENT
  for (i64 i = begin; i < end; ++i) {
    typename Body::Element x;
    Body::load(x, at, i);
    Body::compute(x, entry);
    Body::store(x, at, i);
  }
}

template <class Body>
FUSE_FN void run_elements(const typename Body::PerTensor entry,
                          void* const* pointers, i64 begin, i64 end) {
  const typename Body::Pointers at(pointers);
  if constexpr (requires { typename Body::Lanes; }) {
    Body::Lanes::template run<Body>(entry, at, begin, end);
  } else {
    run_at<Body>(entry, at, begin, end);
  }
}

// Where all elements lie side by side, as in tensors that are dense in the same
// order, the loop is the one without strides.
template <class Body>
FUSE_FN void run_line(const typename Body::PerTensor entry,
                      void* const* pointers, const i64* strides, i64 begin,
                      i64 end) {
  const typename Body::Lines at(pointers, strides);
  if (at.dense()) {
    run_elements<Body>(entry, pointers, begin, end);
  } else {
    run_at<Body>(entry, at, begin, end);
  }
}

// Runs rows of one body. Rows with the same inputs (nearly always all of them:
// the same step count, the same rates) share one evaluation of the per-tensor
// stage.
template <class Body>
class Runner {
 public:
  FUSE_FN explicit Runner(const Launch& launch)
      : launch_(launch), uniform_(Body::uniform(launch.args)) {}

  FUSE_FN void run(const Row& row, i64 begin, i64 end, bool whole) {
    void* const* pointers = launch_.pointers + row.pointers;
    prepare(row, pointers);
    if constexpr (requires { typename Body::Lines; }) {
      run_line<Body>(entry_, pointers, launch_.strides + row.pointers, begin,
                     end);
    } else {
      run_elements<Body>(entry_, pointers, begin, end);
    }
    if (whole) Body::finish(entry_, pointers);
  }

  FUSE_FN void finish(const Row& row) {
    void* const* pointers = launch_.pointers + row.pointers;
    prepare(row, pointers);
    Body::finish(entry_, pointers);
  }

 private:
  FUSE_FN void prepare(const Row& row, void* const* pointers) {
    const double* columns =
        launch_.columns + row.instance * launch_.column_count;
    const typename Body::Inputs inputs = Body::inputs(pointers, columns);
    if (ready_ && __builtin_memcmp(&inputs, &inputs_, sizeof(inputs)) == 0) {
      return;
    }
    inputs_ = inputs;
    entry_ = Body::per_tensor(uniform_, inputs);
    ready_ = true;
  }

  const Launch& launch_;
  typename Body::Uniform uniform_;
  typename Body::Inputs inputs_{};
  typename Body::PerTensor entry_{};
  bool ready_ = false;
};

// True when other rows are lines of the same tensor.
FUSE_FN bool shares_tensor(const Launch& launch, i64 r) {
  const i64 entry = launch.rows[r].entry;
  return (r > 0 && launch.rows[r - 1].entry == entry) ||
         (r + 1 < launch.row_count && launch.rows[r + 1].entry == entry);
}

// Calls visit(row, begin, end, whole) for every row of a part. A line is never
// a whole tensor.
template <class Visit>
FUSE_FN void for_each_row(const Launch& launch, const Part& part, Visit visit) {
  for (i64 r = part.row; r <= part.last_row; ++r) {
    const Row& row = launch.rows[r];
    const i64 begin = r == part.row ? part.begin : 0;
    const i64 end = r == part.last_row ? part.end : row.numel;
    const bool whole = begin == 0 && end == row.numel;
    const bool lines = launch.strides != nullptr && shares_tensor(launch, r);
    visit(row, begin, end, whole && !lines);
  }
}

#endif  // FUSE_GPU

}  // namespace FUSE_DEVICE
}  // namespace fuse

#endif  // FUSEBOOK_DEVICE_H
