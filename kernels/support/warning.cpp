#include "fusebook/support/warning.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>

#include "fusebook/support/content_hash.h"

namespace fuse {
namespace {

// Hashes of the topics seen. Lock-free, so that a process forked at a bad
// moment cannot hang here; topics beyond this number are ignored.
constexpr std::size_t capacity = 256;
constinit std::array<std::atomic<std::uint64_t>, capacity> seen = {};

}  // namespace

bool first_time(std::string_view topic) {
  const std::uint64_t hash = content_hash(topic) | 1U;
  for (std::size_t i = 0; i < capacity; ++i) {
    std::uint64_t found = 0;
    if (seen[(hash / 2 + i) % capacity].compare_exchange_strong(found, hash)) {
      return true;
    }
    if (found == hash) return false;
  }
  return false;
}

void warn(const std::string& message) {
  const std::string line = "fusebook: warning: " + message + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void warn_once(const std::string& message) {
  if (first_time(message)) warn(message);
}

}  // namespace fuse
