#include "fusebook/support/number_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace fuse {
namespace {

template <class T>
std::string shortest(T value) {
  if (std::isnan(value)) return "nan";
  const double size = std::abs(double(value));
  const bool exponent =
      !std::isinf(value) && size != 0 && (size < 1e-4 || size >= 1e16);
  std::array<char, 64> text{};
  const auto result = std::to_chars(
      text.data(), text.data() + text.size(), value,
      exponent ? std::chars_format::scientific : std::chars_format::fixed);
  return {text.data(), result.ptr};
}

/// The decimal exponent after rounding to `digits` significant digits.
int rounded_exponent(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*e", digits - 1, value);
  const std::string shown = text.data();
  return std::stoi(shown.substr(shown.find('e') + 1));
}

std::string significant(double value, int digits) {
  std::array<char, 352> text{};
  const int exponent = rounded_exponent(value, digits);
  if (exponent < -4) {
    std::snprintf(text.data(), text.size(), "%.*e", digits - 1, value);
  } else {
    const int decimals = std::max(0, digits - 1 - exponent);
    std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  }
  return text.data();
}

}  // namespace

std::string number_text(double value) { return shortest(value); }
std::string number_text(float value) { return shortest(value); }

std::string quantity_text(double value, const std::string& unit) {
  if (!std::isfinite(value)) return number_text(value) + " " + unit;
  if (unit == "x") return significant(value, 3) + "x";
  return significant(value, 4) + (unit.empty() ? "" : " " + unit);
}

}  // namespace fuse
