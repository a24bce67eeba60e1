// What rounding to a dtype should give, by the definition of its numbers and
// nothing else, and numbers of all dtypes to try things with.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "fusebook/ops/dtype.h"
#include "support/exact_values.h"
#include "support/testing.h"

namespace reduced {

using fuse::DType;

inline constexpr std::array all_dtypes = {DType::float32, DType::float64,
                                          DType::float16, DType::bfloat16,
                                          DType::int16};
inline constexpr std::array types = {DType::float16, DType::bfloat16};

/// The numbers of a float of 16 bits: m * 2^e with m of so many bits.
struct Format {
  int digits;
  int least_exponent;  ///< of the smallest ordinary number
  double largest;
};

inline Format format_of(DType dtype) {
  return dtype == DType::float16 ? Format{11, -14, 65504.0}
                                 : Format{8, -126, std::ldexp(255.0, 120)};
}

/// What 16 bits stand for.
inline double decode(DType dtype, std::uint16_t bits) {
  if (dtype == DType::int16) return bits < 0x8000 ? bits : bits - 65536.0;
  const Format format = format_of(dtype);
  const int mantissa_bits = format.digits - 1;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int exponent = (bits & 0x7fff) >> mantissa_bits;
  const int most = (1 << (15 - mantissa_bits)) - 1;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == most) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) {
    return sign * std::ldexp(mantissa, format.least_exponent - mantissa_bits);
  }
  return sign *
         std::ldexp((1 << mantissa_bits) + mantissa,
                    exponent - 1 + format.least_exponent - mantissa_bits);
}

/// The nearest number of a dtype, of two the one with an even last digit; of whole
/// numbers the one towards zero.
inline double round(DType dtype, double value) {
  if (dtype == DType::int16) {
    if (std::isnan(value)) return 0;
    if (value >= 32767) return 32767;
    if (value <= -32768) return -32768;
    return double(int(value));
  }
  if (dtype == DType::float64) return value;
  if (dtype == DType::float32) return double(float(value));
  if (value == 0 || !std::isfinite(value)) return value;
  const Format format = format_of(dtype);
  const int exponent = std::max(std::ilogb(value), format.least_exponent);
  const int unit = exponent - format.digits + 1;
  const double nearest =
      std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
  if (std::abs(nearest) <= format.largest) return nearest;
  return std::copysign(std::numeric_limits<double>::infinity(), value);
}

/// The type that elements of several types meet in: the smallest that holds the
/// numbers of all.
inline DType common_type(const std::vector<DType>& met) {
  const auto has = [&](DType dtype) {
    return std::find(met.begin(), met.end(), dtype) != met.end();
  };
  if (has(DType::float64)) return DType::float64;
  const bool same = std::all_of(met.begin(), met.end(),
                                [&](DType dtype) { return dtype == met[0]; });
  return same ? met[0] : DType::float32;
}

/// Whether `result` is what a 16-bit type makes of some float within `bound`
/// units of `value`; the term says which.
inline bool is_close(DType dtype, double result, exact_values::Wide value,
                     exact_values::Wide term, double bound) {
  if (std::isnan(value)) return testing::same_value(result, round(dtype, NAN));
  if (value == 0 && term == 0 && dtype != DType::int16) {
    return result == 0 && std::signbit(result) == std::signbit(value);
  }
  const exact_values::Wide allowed =
      (bound + 0x1p-10) *
      exact_values::unit<float>(std::max(term, std::abs(value)));
  const double low = round(dtype, double(value - allowed));
  const double high = round(dtype, double(value + allowed));
  return low <= result && result <= high;
}

/// exact_values::judge for the result of an operation in a 16-bit type.
inline exact_values::Verdict judge(DType dtype, fuse::OpCode op,
                                   const std::array<double, 4>& operands,
                                   double result) {
  const fuse::OpInfo& row = fuse::info(op);
  std::array<float, 4> x;
  for (std::size_t k = 0; k < 4; ++k) x[k] = float(operands[k]);
  const bool outside = row.domain == fuse::Domain::positive && x[0] < 0;
  const auto expected = exact_values::evaluate(op, x);
  if (outside || !expected.in_range) return exact_values::Verdict::says_nothing;
  return is_close(dtype, result, expected.value, expected.term, row.ulp)
             ? exact_values::Verdict::holds
             : exact_values::Verdict::fails;
}

/// A number of a dtype, of any size, sometimes a special one.
inline double any_value(DType dtype, testing::Random& random) {
  if (dtype == DType::float64) return testing::any_value<double>(random);
  const auto value = double(testing::any_value<float>(random));
  if (!is_reduced(dtype)) return value;
  if (random.chance(dtype == DType::int16 ? 0.8 : 0.1)) {
    return decode(dtype, std::uint16_t(random.below(65536)));
  }
  return round(dtype, value);
}

}  // namespace reduced
