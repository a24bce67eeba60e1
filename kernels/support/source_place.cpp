#include "fusebook/support/source_place.h"

#include <fmt/core.h>

#include <cstddef>

namespace fuse {

std::string short_path(const std::string& file) {
  std::size_t start = std::string::npos;
  for (const char* folder : {"recipes/", "common/", "kernels/", "tests/"}) {
    const std::size_t found = file.rfind(std::string("/") + folder);
    if (found == std::string::npos) continue;
    if (start == std::string::npos || found > start) start = found;
  }
  return start == std::string::npos ? file : file.substr(start + 1);
}

std::string at(const std::string& file, std::int64_t line) {
  return fmt::format("{}:{}", file, line);
}

std::string at(const std::source_location& place) {
  return at(place.file_name(), place.line());
}

std::string short_place(const std::source_location& place) {
  return at(short_path(place.file_name()), place.line());
}

}  // namespace fuse
