#include "fusebook/harness/provenance.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

#include "fusebook/device/device_registry.h"
#include "fusebook/runtime/parallel.h"
#include "fusebook/support/error.h"
#include "fusebook/support/machine.h"

namespace fuse {
namespace {

std::string compiler_name() {
#if defined(__clang__)
  return fmt::format("clang++ {}.{}.{}", __clang_major__, __clang_minor__,
                     __clang_patchlevel__);
#elif defined(__GNUC__)
  return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__,
                     __GNUC_PATCHLEVEL__);
#else
  return "unknown compiler";
#endif
}

std::time_t current_time() {
  const char* fixed = std::getenv("SOURCE_DATE_EPOCH");
  if (fixed == nullptr) return std::time(nullptr);
  long long seconds = 0;
  const char* end = fixed + std::strlen(fixed);
  const auto result = std::from_chars(fixed, end, seconds);
  // The year 9999 is the last that four digits can say.
  if (result.ec != std::errc() || result.ptr != end || seconds < 0 ||
      seconds > 253402300799) {
    throw UsageError(std::string("SOURCE_DATE_EPOCH is '") + fixed +
                     "'; it must be a number of seconds since 1970");
  }
  return std::time_t(seconds);
}

}  // namespace

std::string current_date() {
  const std::time_t now = current_time();
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d", &parts);
  return text.data();
}

Provenance current_provenance() {
  const Device device = default_device();
  return {device_model(device), device_architecture(device),
          thread_count(),       compiler_name(),
          system_name(),        current_date()};
}

}  // namespace fuse
