#pragma once

#include <cstdint>
#include <functional>

namespace fuse {

/// Events so far, for one compiled function or the whole process.
struct Counters {
  /// Kernels run over the elements of tensors. Arithmetic on per-tensor scalars
  /// alone (a step count, a bias correction) does not count in eager mode.
  std::int64_t launches = 0;
  /// Programs lowered to a kernel, whether it is then compiled, found in a
  /// cache, or interpreted. Running on a kernel made for another program, as
  /// when groups of parameters come and go, does not count.
  std::int64_t compilations = 0;
  /// Compilations because a guard of an earlier one failed.
  std::int64_t recompiles = 0;
  /// Times a value was needed before the compiled function had ended.
  std::int64_t graph_breaks = 0;
  /// Times the table of addresses changed: rebuilt for other lists, or updated
  /// because tensors, such as new gradients, had only moved. Finding one of the
  /// last few tables again does not count.
  std::int64_t uploads = 0;
  /// Bytes loaded and stored by the launches.
  std::int64_t bytes_moved = 0;
  /// Calls inside another compiled function, which became part of it: their
  /// effects are counted there.
  std::int64_t inlined = 0;
  /// Phases that reduced elements to numbers, each before the phase that used
  /// them. They are parts of one launch; on a GPU where blocks cannot wait for
  /// each other, launches of their own.
  std::int64_t reduction_phases = 0;

  Counters& operator+=(const Counters& other);
  friend Counters operator-(Counters a, const Counters& b);
  friend bool operator==(const Counters&, const Counters&) = default;
};

/// The sum over all functions and all eager operations of the process.
Counters process_counters();

/// What one call of `fn` adds to that sum.
Counters counters_of(const std::function<void()>& fn);

/// Adds to the sum; used by the executor.
void add_to_process(const Counters& more);

}  // namespace fuse
