#include "fusebook/support/available_memory.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

namespace fuse {
namespace {

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
using Number = std::optional<std::int64_t>;

Number read_number(const std::string& path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  // "max", a missing file and a number beyond 2^63 all mean no limit.
  return file >> value ? Number(value) : std::nullopt;
}

/// The number after `key` in a file of lines "key number ...".
Number read_field(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name;
    std::int64_t value = 0;
    if (words >> name && name == key && words >> value) return value;
  }
  return std::nullopt;
}

std::int64_t system_room(const std::string& proc) {
  const Number available = read_field(proc + "/meminfo", "MemAvailable:");
  if (!available) return unlimited;
  const Number swap = read_field(proc + "/meminfo", "SwapFree:");
  return (*available + swap.value_or(0)) * 1024;
}

struct GroupFiles {
  const char* limit;
  const char* usage;
  const char* reclaimable;
};
constexpr GroupFiles version1{"/memory.limit_in_bytes",
                              "/memory.usage_in_bytes", "total_inactive_file"};
constexpr GroupFiles version2{"/memory.max", "/memory.current",
                              "inactive_file"};

std::int64_t group_room(const std::string& folder, const GroupFiles& files) {
  const Number limit = read_number(folder + files.limit);
  const Number usage = read_number(folder + files.usage);
  if (!limit || !usage) return unlimited;
  // Old page cache counts as used but is reclaimed before anything is killed.
  const Number cache = read_field(folder + "/memory.stat", files.reclaimable);
  const std::int64_t used =
      std::max<std::int64_t>(*usage - cache.value_or(0), 0);
  return std::max<std::int64_t>(*limit - used, 0);
}

/// The minimum room in `path` and all groups above it, up to the mount.
std::int64_t branch_room(const std::string& mount, std::string path,
                         const GroupFiles& files) {
  std::int64_t room = unlimited;
  while (!path.empty() && path != "/") {
    room = std::min(room, group_room(mount + path, files));
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  return std::min(room, group_room(mount, files));
}

bool names_memory(const std::string& controllers) {
  return ("," + controllers + ",").find(",memory,") != std::string::npos;
}

std::int64_t cgroup_room(const MemorySources& sources) {
  std::int64_t room = unlimited;
  std::ifstream file(sources.proc + "/self/cgroup");
  std::string line;
  // Each line is "id:controllers:path"; in version 2 controllers is empty.
  while (std::getline(file, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (names.empty()) {
      room = std::min(room, branch_room(sources.cgroup, path, version2));
    } else if (names_memory(names)) {
      room = std::min(room,
                      branch_room(sources.cgroup + "/memory", path, version1));
    }
  }
  return room;
}

}  // namespace

std::int64_t available_memory(const MemorySources& sources) {
  return std::min(system_room(sources.proc), cgroup_room(sources));
}

std::int64_t resident_memory(const MemorySources& sources) {
  std::ifstream file(sources.proc + "/self/statm");
  std::int64_t total = 0;
  std::int64_t resident = 0;
  if (!(file >> total >> resident)) return 0;
  return resident * std::int64_t(sysconf(_SC_PAGESIZE));
}

std::int64_t room_for_more(std::int64_t available, std::int64_t resident,
                           std::int64_t taken) {
  return available - std::max<std::int64_t>(taken - resident, 0);
}

std::int64_t peak_resident_memory(const MemorySources& sources) {
  const Number peak = read_field(sources.proc + "/self/status", "VmHWM:");
  return peak.value_or(0) * 1024;
}

std::string format_bytes(std::int64_t bytes) {
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  static constexpr std::array units{"kB", "MB", "GB", "TB", "PB", "EB"};
  double value = double(bytes) / 1000;
  std::size_t unit = 0;
  while (value >= 999.95 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %s", value, units[unit]);
  return text.data();
}

}  // namespace fuse
