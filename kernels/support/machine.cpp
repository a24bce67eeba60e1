#include "fusebook/support/machine.h"

#include <sys/utsname.h>

#include <fstream>
#include <string_view>

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

}  // namespace

std::string cpu_name() {
  std::string name = field_of("/proc/cpuinfo", "model name", ':');
  if (!name.empty()) return name;
  return std::string(system_names().machine) + " CPU";
}

std::string system_name() {
  std::string name = field_of("/etc/os-release", "NAME", '=');
  if (name.empty()) return system_names().sysname;
  const std::string version = field_of("/etc/os-release", "VERSION_ID", '=');
  return version.empty() ? name : name + " " + version;
}

}  // namespace fuse
