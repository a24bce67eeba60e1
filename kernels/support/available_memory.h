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

/// Bytes that may still be handed out where `available` are left, to a process
/// that was handed out `taken` bytes and holds `resident`: memory is mapped when it
/// is first touched, so that some of what was taken may be missing from both. What
/// else the process holds (the memory of other libraries) makes no room.
std::int64_t room_for_more(std::int64_t available, std::int64_t resident,
                           std::int64_t taken);

/// The most bytes of memory this process has held at once, 0 where that cannot
/// be learned.
std::int64_t peak_resident_memory(const MemorySources& sources = {});

/// A size for people: "512 bytes", "4.2 MB", "41.9 GB" (powers of 1000).
std::string format_bytes(std::int64_t bytes);

}  // namespace fuse
