#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fusebook/optim_base/each_scalar.h"
#include "fusebook/trace/scalar.h"

namespace fuse {

/// Copies into `to` the numbers and switches of `own` that are not those of a
/// default-constructed struct of options: somebody has set them.
template <class Options>
void keep_set_options(Options& own, Options& to) {
  std::vector<Scalar> numbers;
  std::vector<bool> flags;
  Options of_class;
  each_scalar(of_class, [&](const char*, int, Scalar& number) {
    numbers.push_back(number);
  });
  of_class.for_each_flag([&](const char*, bool& on) { flags.push_back(on); });
  std::vector<Scalar*> numbers_to;
  std::vector<bool*> flags_to;
  each_scalar(to, [&](const char*, int, Scalar& number) {
    numbers_to.push_back(&number);
  });
  to.for_each_flag([&](const char*, bool& on) { flags_to.push_back(&on); });
  std::size_t n = 0;
  each_scalar(own, [&](const char*, int, Scalar& number) {
    const bool set = number.is_tensor() ||
                     std::bit_cast<std::uint64_t>(number.value()) !=
                         std::bit_cast<std::uint64_t>(numbers[n].value());
    if (set) *numbers_to[n] = number;
    ++n;
  });
  std::size_t f = 0;
  own.for_each_flag([&](const char*, bool& on) {
    if (on != flags[f]) *flags_to[f] = on;
    ++f;
  });
}

}  // namespace fuse
