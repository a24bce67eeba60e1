#include "provenance.h"

#include <sys/utsname.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string_view>

#include "devices.h"
#include "error.h"
#include "parallel.h"

namespace fuse {
namespace {

std::string trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n\"'";
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return "";
  return std::string(
      text.substr(first, text.find_last_not_of(blank) - first + 1));
}

/// The value of the first line "key<separator>value" in a file.
std::string field_of(const char* path, const std::string& key, char separator) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t split = line.find(separator);
    if (split == std::string::npos) continue;
    if (trimmed(line.substr(0, split)) == key) {
      return trimmed(line.substr(split + 1));
    }
  }
  return "";
}

utsname system_names() {
  utsname names{};
  uname(&names);
  return names;
}

std::string compiler_name() {
#if defined(__clang__)
  return "clang++ " + std::to_string(__clang_major__) + "." +
         std::to_string(__clang_minor__) + "." +
         std::to_string(__clang_patchlevel__);
#elif defined(__GNUC__)
  return "g++ " + std::to_string(__GNUC__) + "." +
         std::to_string(__GNUC_MINOR__) + "." +
         std::to_string(__GNUC_PATCHLEVEL__);
#else
  return "unknown compiler";
#endif
}

std::string system_name() {
  std::string name = field_of("/etc/os-release", "NAME", '=');
  if (name.empty()) return system_names().sysname;
  const std::string version = field_of("/etc/os-release", "VERSION_ID", '=');
  return version.empty() ? name : name + " " + version;
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

std::string cpu_name() {
  std::string name = field_of("/proc/cpuinfo", "model name", ':');
  if (!name.empty()) return name;
  return std::string(system_names().machine) + " CPU";
}

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

std::string short_path(const std::string& file) {
  std::size_t start = std::string::npos;
  for (const char* folder : {"recipes/", "common/", "kernels/", "tests/"}) {
    const std::size_t found = file.rfind(std::string("/") + folder);
    if (found == std::string::npos) continue;
    if (start == std::string::npos || found > start) start = found;
  }
  return start == std::string::npos ? file : file.substr(start + 1);
}

}  // namespace fuse
