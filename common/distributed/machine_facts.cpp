#include "fusebook/distributed/machine_facts.h"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <string_view>

#include "fusebook/support/content_hash.h"
#include "fusebook/support/version.h"

namespace fuse {
namespace {

// Functions whose last digits differ from library to library.
std::array<double, 9> samples_at(double x) {
  return {std::exp(x),       std::expm1(x),      std::log(x + 9),
          std::log1p(x + 8), std::pow(x + 9, x), std::tanh(x),
          std::sin(x),       std::cos(x),        std::erf(x)};
}

std::uint64_t hash_of_functions() {
  std::uint64_t hash = 0;
  for (int k = -256; k <= 256; ++k) {
    const auto samples = samples_at(double(k) / 37);
    const auto bytes = std::string_view(
        reinterpret_cast<const char*>(samples.data()), sizeof(samples));
    hash = content_hash(bytes, hash);
  }
  return hash;
}

}  // namespace

std::vector<std::string> machine_facts() {
  static const std::uint64_t functions = hash_of_functions();
  return {fmt::format("Fusebook {}", version()),
          fmt::format("a C library whose functions give {}",
                      hex_digits(functions))};
}

}  // namespace fuse
