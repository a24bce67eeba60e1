#pragma once

#include <concepts>
#include <string>

namespace fuse {

/// The shortest text that reads back as the same number: "0.01", "1024",
/// "1e-08". Uses exponents only below 1e-4 and from 1e16. "nan", "inf", "-inf".
std::string number_text(double value);
std::string number_text(float value);

template <std::integral T>
std::string number_text(T value) {
  return std::to_string(value);
}

/// A number with at least four significant digits and its unit: "747.2 us",
/// "12346 us". The unit "x" gets three and no space: "2.41x".
std::string quantity_text(double value, const std::string& unit);

}  // namespace fuse
