// The one order in which elements are reduced, once more and by plain loops, as
// the documentation has it: chunks of 8192 elements, 256 lanes in each, and the
// upper half of the lanes joined to the lower one until one is left.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

namespace reduction_order {

using Join = double (*)(double, double);

inline double add(double a, double b) { return a + b; }
inline double larger(double a, double b) {
  return std::isnan(a) || a > b ? a : b;
}

inline double join_chunk(const double* values, std::size_t count, Join join,
                         double first) {
  std::array<double, 256> lanes;
  lanes.fill(first);
  for (std::size_t i = 0; i < count; ++i) {
    lanes[i % 256] = join(lanes[i % 256], values[i]);
  }
  for (std::size_t half = 128; half > 0; half /= 2) {
    for (std::size_t k = 0; k < half; ++k) {
      lanes[k] = join(lanes[k], lanes[k + half]);
    }
  }
  return lanes[0];
}

/// Numbers of chunks, or of tensors.
inline double join_numbers(const std::vector<double>& numbers, Join join,
                           double first) {
  return numbers.size() == 1
             ? numbers[0]
             : join_chunk(numbers.data(), numbers.size(), join, first);
}

/// All elements of a tensor.
inline double join_elements(const std::vector<double>& values, Join join,
                            double first) {
  std::vector<double> chunks;
  for (std::size_t i = 0; i < values.size() || i == 0; i += 8192) {
    const std::size_t count = std::min<std::size_t>(8192, values.size() - i);
    chunks.push_back(join_chunk(values.data() + i, count, join, first));
  }
  return join_numbers(chunks, join, first);
}

}  // namespace reduction_order
