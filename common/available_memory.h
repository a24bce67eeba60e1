#pragma once

#include <cstdint>
#include <string>

namespace fuse {

/// Where the system says how much memory there is; tests point it elsewhere.
struct MemorySources {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
};

/// Bytes this process could still take into use without being killed for it:
/// the smallest of the system's available memory with its free swap, and what
/// is left below the limit of every control group this process is in.
/// INT64_MAX where nothing can be learned.
std::int64_t available_memory(const MemorySources& sources = {});

/// Bytes of memory this process holds now, 0 where that cannot be learned.
std::int64_t resident_memory(const MemorySources& sources = {});

/// The most bytes of memory this process has held at once, 0 where that cannot
/// be learned.
std::int64_t peak_resident_memory(const MemorySources& sources = {});

/// A size for people: "512 bytes", "4.2 MB", "41.9 GB" (powers of 1000).
std::string format_bytes(std::int64_t bytes);

}  // namespace fuse
