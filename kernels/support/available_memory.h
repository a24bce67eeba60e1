#pragma once

#include <cstdint>
#include <string>

namespace fuse {

/// Files in which the system reports memory; tests substitute their own.
struct MemorySources {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
};

/// Bytes this process could still use without being killed: the smallest of the
/// system's available memory plus free swap, and what remains below the limit
/// of every control group this process is in. INT64_MAX if unknown.
std::int64_t available_memory(const MemorySources& sources = {});

/// Bytes of memory this process currently holds; 0 if unknown.
std::int64_t resident_memory(const MemorySources& sources = {});

/// Bytes that may still be handed out if `available` are left, to a process
/// that was handed out `taken` bytes and holds `resident`: memory is mapped on
/// first touch, so some of what was taken may be missing from both. Other
/// memory the process holds (that of other libraries) adds no room.
std::int64_t room_for_more(std::int64_t available, std::int64_t resident,
                           std::int64_t taken);

/// The maximum number of bytes this process has held at once; 0 if unknown.
std::int64_t peak_resident_memory(const MemorySources& sources = {});

/// A human-readable size: "512 bytes", "4.2 MB", "41.9 GB" (powers of 1000).
std::string format_bytes(std::int64_t bytes);

}  // namespace fuse
