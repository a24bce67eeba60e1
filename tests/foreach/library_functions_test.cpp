// The functions of the C library on the tested device, whose own they are, against
// numbers of higher precision: within the largest errors that are published.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "fusebook/foreach/foreach.h"
#include "fusebook/ops/ops.h"
#include "support/tested_device.h"
#include "support/testing.h"

using namespace fuse;
using testing::Random;

namespace {

using Wide = long double;

struct Function {
  OpCode op;
  TensorList (*run)(const TensorList&, const TensorList&);
  Wide (*exact)(Wide, Wide);
  // In units in the last place, of float32 and of float64. CUDA C++ Programming
  // Guide, mathematical functions; fmod is exact.
  double float32_bound;
  double float64_bound;
};

#define UNARY(name, f32, f64)                                                \
  {OpCode::name,                                                             \
   [](const TensorList& a, const TensorList&) { return foreach_##name(a); }, \
   [](Wide a, Wide) { return std::name(a); }, f32, f64}
#define BINARY(name, f32, f64)                    \
  {OpCode::name,                                  \
   [](const TensorList& a, const TensorList& b) { \
     return foreach_##name(a, b);                 \
   },                                             \
   [](Wide a, Wide b) { return std::name(a, b); }, f32, f64}

const std::vector<Function> functions = {
    UNARY(exp, 2, 1),    UNARY(exp2, 2, 1),  UNARY(expm1, 1, 1),
    UNARY(log, 1, 1),    UNARY(log2, 1, 1),  UNARY(log10, 2, 1),
    UNARY(log1p, 1, 1),  BINARY(pow, 4, 2),  BINARY(hypot, 3, 2),
    UNARY(sin, 2, 2),    UNARY(cos, 2, 2),   UNARY(tan, 4, 2),
    UNARY(asin, 2, 2),   UNARY(acos, 2, 2),  UNARY(atan, 2, 2),
    BINARY(atan2, 3, 2), UNARY(sinh, 3, 2),  UNARY(cosh, 2, 1),
    UNARY(tanh, 2, 1),   UNARY(asinh, 3, 3), UNARY(acosh, 4, 3),
    UNARY(atanh, 3, 2),  UNARY(erf, 2, 2),   UNARY(erfc, 4, 5),
    BINARY(fmod, 0, 0)};
#undef UNARY
#undef BINARY

// A number that is none, or beyond the type, has no units: right or wrong.
template <class T>
double error_of(T got, Wide exact) {
  using Limits = std::numeric_limits<T>;
  constexpr double wrong = Limits::infinity();
  if (std::isnan(exact)) return std::isnan(got) ? 0 : wrong;
  const bool is_beyond = std::fabs(exact) > Wide(Limits::max());
  if (is_beyond) {
    const bool largest = std::fabs(got) >= Limits::max();
    return largest && std::signbit(got) == std::signbit(exact) ? 0 : wrong;
  }
  if (!std::isfinite(got)) return wrong;
  const int exponent =
      exact == 0 ? Limits::min_exponent : std::ilogb(exact) + 1;
  const int last = std::max(exponent, Limits::min_exponent) - Limits::digits;
  return double(std::ldexp(std::fabs(Wide(got) - exact), -last));
}

template <class T>
T any_number(Random& random, bool of_usual_size) {
  if (of_usual_size) return T(random.uniform(-12, 12));
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  return std::bit_cast<T>(Bits(random.bits()));
}

template <class T>
Tensor numbers(DType dtype, std::int64_t count, std::uint64_t seed) {
  Random random(seed);
  Tensor tensor = empty({count}, dtype, cpu_device);
  for (std::int64_t i = 0; i < count; ++i) {
    tensor.data<T>()[i] = any_number<T>(random, i % 2 == 0);
  }
  return tensor;
}

template <class T>
void check_functions(DType dtype) {
  const Device device = testing::tested_device();
  const bool simulated = device.kind == Device::Kind::cuda_sim;
  const std::int64_t count = simulated ? 2000 : 200000;
  const Tensor a = numbers<T>(dtype, count, 1);
  const Tensor b = numbers<T>(dtype, count, 2);
  const TensorList first({a.to(device)});
  const TensorList second({b.to(device)});
  for (const Function& function : functions) {
    const Tensor got = function.run(first, second)[0].cpu();
    double worst = 0;
    std::int64_t place = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const double error = error_of(
          got.data<T>()[i], function.exact(a.data<T>()[i], b.data<T>()[i]));
      if (error <= worst) continue;
      worst = error;
      place = i;
    }
    INFO(std::string(info(function.op).name)
         << " in " << std::string(name_of(dtype)) << " of "
         << a.data<T>()[place] << ", " << b.data<T>()[place] << " is "
         << got.data<T>()[place]);
    const double published =
        sizeof(T) == 4 ? function.float32_bound : function.float64_bound;
    // Rounding what is exact takes half a unit. A simulated GPU has the functions of
    // the host, which are as good as their rows in ops.def say.
    CHECK(worst <= (simulated ? info(function.op).ulp : published + 0.5));
  }
}

}  // namespace

TEST_CASE("functions of the library are as accurate as is published") {
  check_functions<float>(DType::float32);
  check_functions<double>(DType::float64);
}
