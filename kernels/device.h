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

// Functions a compiler must not see through: it would fold and vectorise them
// to other bits than the library's. Filled once by the host (calls.cpp).
struct Calls {
  float (*exp_f32)(float);
  double (*exp_f64)(double);
  float (*log_f32)(float);
  double (*log_f64)(double);
  float (*tanh_f32)(float);
  double (*tanh_f64)(double);
  float (*pow_f32)(float, float);
  double (*pow_f64)(double, double);
};

// One tensor of a list, in every slot of its body.
struct Row {
  i64 numel;
  i64 pointers;  // where its addresses start in Launch::pointers
  i64 entry;     // number of its tensor
  int body;      // which of the kernel's bodies updates it
  int instance;  // whose columns it reads
};

// A share of the work: from element `begin` of row `row` up to, not including,
// element `end` of row `last_row`. Rows in between are whole.
struct Part {
  i64 row;
  i64 begin;
  i64 last_row;
  i64 end;
};

// A share of a GPU's work: elements [begin, end) of one row. `shares` are all
// that its tensor has; the last of them to end makes the per-tensor stores.
struct Chunk {
  i64 row;
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
};

// What a kernel on a GPU is given; all of it in the memory of the device.
// `tickets` counts the shares of each tensor that have ended, and is zero
// between launches.
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
using Unaligned = T;
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
template <class T>
using Unaligned = typename UnalignedOf<T>::type;
#endif

template <class T>
FUSE_FN double load_scalar(const void* address) {
  return double(*static_cast<const Unaligned<T>*>(address));
}
template <class T>
FUSE_FN void store_scalar(void* address, double value) {
  *static_cast<Unaligned<T>*>(address) = T(value);
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
#if defined(__CUDACC__)
FUSE_FN float exp(float a) { return ::expf(a); }
FUSE_FN double exp(double a) { return ::exp(a); }
FUSE_FN float log(float a) { return ::logf(a); }
FUSE_FN double log(double a) { return ::log(a); }
FUSE_FN float tanh(float a) { return ::tanhf(a); }
FUSE_FN double tanh(double a) { return ::tanh(a); }
FUSE_FN float any_pow(float a, float b) { return ::powf(a, b); }
FUSE_FN double any_pow(double a, double b) { return ::pow(a, b); }
#else
FUSE_FN float exp(float a) { return calls->exp_f32(a); }
FUSE_FN double exp(double a) { return calls->exp_f64(a); }
FUSE_FN float log(float a) { return calls->log_f32(a); }
FUSE_FN double log(double a) { return calls->log_f64(a); }
FUSE_FN float tanh(float a) { return calls->tanh_f32(a); }
FUSE_FN double tanh(double a) { return calls->tanh_f64(a); }
FUSE_FN float any_pow(float a, float b) { return calls->pow_f32(a, b); }
FUSE_FN double any_pow(double a, double b) { return calls->pow_f64(a, b); }
#endif

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
  if (!ordinary) return {high, 0.0};
  const double low = FUSE_BUILTIN(fma)(x.high, y.high, -high) +
                     (x.high * y.low + x.low * y.high);
  const double sum = high + low;
  return {sum, low - (sum - high)};
}

FUSE_FN TwoDoubles reciprocal(double x) {
  const double high = 1.0 / x;
  const bool ordinary = abs(high) >= 0x1p-960 && is_finite(high);
  if (!ordinary) return {high, 0.0};
  return {high, FUSE_BUILTIN(fma)(-high, x, 1.0) / x};
}

// base to a whole power, the same on every machine. Negative powers multiply
// reciprocals: dividing at the end would overflow where the result is small.
FUSE_CALLED double power(double base, i64 exponent) {
  TwoDoubles result = {1.0, 0.0};
  TwoDoubles square = exponent < 0 ? reciprocal(base) : TwoDoubles{base, 0.0};
  for (i64 rest = exponent < 0 ? -exponent : exponent; rest != 0; rest >>= 1) {
    if (rest & 1) result = multiply(result, square);
    if (rest > 1) square = multiply(square, square);
  }
  return result.high;
}

// Whole exponents of this size go through `power`, all others to the host.
FUSE_FN bool is_whole(double exponent) {
  return exponent == rint(exponent) && abs(exponent) <= 2147483648.0;
}
FUSE_FN double pow(double base, double exponent) {
  if (!is_whole(exponent)) return any_pow(base, exponent);
  return power(base, i64(exponent));
}
FUSE_FN float pow(float base, float exponent) {
  if (!is_whole(exponent)) return any_pow(base, exponent);
  return float(power(base, i64(exponent)));
}

}  // namespace math

#if !defined(__CUDACC__)
// The loop over elements [begin, end) of one tensor. `Body` is generated:
// Pointers, PerTensor, Element, load, compute, store.
template <class Body>
FUSE_FN void run_elements(const typename Body::PerTensor entry,
                          void* const* pointers, i64 begin, i64 end) {
  const typename Body::Pointers at(pointers);
  FUSE_INDEPENDENT
  for (i64 i = begin; i < end; ++i) {
    typename Body::Element x;
    Body::load(x, at, i);
    Body::compute(x, entry);
    Body::store(x, at, i);
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
    run_elements<Body>(entry_, pointers, begin, end);
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

// Calls visit(row, begin, end, whole) for every row of a part.
template <class Visit>
FUSE_FN void for_each_row(const Launch& launch, const Part& part, Visit visit) {
  for (i64 r = part.row; r <= part.last_row; ++r) {
    const Row& row = launch.rows[r];
    const i64 begin = r == part.row ? part.begin : 0;
    const i64 end = r == part.last_row ? part.end : row.numel;
    visit(row, begin, end, begin == 0 && end == row.numel);
  }
}

#endif  // not a GPU's compiler

}  // namespace FUSE_DEVICE
}  // namespace fuse

#endif  // FUSEBOOK_DEVICE_H
