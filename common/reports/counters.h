#pragma once

#include <cstdint>
#include <functional>

namespace fuse {

/// What happened so far, for one compiled function or the whole process.
struct Counters {
  /// Kernels run over the elements of tensors. Arithmetic on per-tensor scalars
  /// alone (a step count, a bias correction) in eager mode is none.
  std::int64_t launches = 0;
  /// Programs that were lowered to a kernel, whether the kernel then came from
  /// the compiler, from a cache, or is interpreted. What runs on a kernel made
  /// for another program, as do groups of parameters that come and go, is none.
  std::int64_t compilations = 0;
  /// Compilations because a guard of an earlier one failed.
  std::int64_t recompiles = 0;
  /// Times a value was needed before the compiled function had ended.
  std::int64_t graph_breaks = 0;
  /// Times the table of addresses changed: built again for other lists, or given
  /// other addresses where tensors, such as new gradients, had only moved. Lists
  /// that find one of the last few tables again change nothing.
  std::int64_t uploads = 0;
  /// Bytes the launches loaded and stored.
  std::int64_t bytes_moved = 0;
  /// Calls of a compiled function inside another one, of which they became part:
  /// what they cause is counted there.
  std::int64_t inlined = 0;

  Counters& operator+=(const Counters& other);
  friend Counters operator-(Counters a, const Counters& b);
  friend bool operator==(const Counters&, const Counters&) = default;
};

/// Sum over all functions and all eager operations of the process.
Counters process_counters();

/// What one call of `fn` adds to that sum.
Counters counters_of(const std::function<void()>& fn);

/// Adds to the sum; for the executor.
void add_to_process(const Counters& more);

}  // namespace fuse
