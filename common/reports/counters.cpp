#include "fusebook/reports/counters.h"

#include <mutex>

#include "fusebook/support/undefined.h"

namespace fuse {
namespace {

std::mutex mutex;
Counters total;

}  // namespace

Counters& Counters::operator+=(const Counters& other) {
  launches += other.launches;
  compilations += other.compilations;
  recompiles += other.recompiles;
  graph_breaks += other.graph_breaks;
  uploads += other.uploads;
  bytes_moved += other.bytes_moved;
  inlined += other.inlined;
  reduction_phases += other.reduction_phases;
  return *this;
}

Counters operator-(Counters a, const Counters& b) {
  a.launches -= b.launches;
  a.compilations -= b.compilations;
  a.recompiles -= b.recompiles;
  a.graph_breaks -= b.graph_breaks;
  a.uploads -= b.uploads;
  a.bytes_moved -= b.bytes_moved;
  a.inlined -= b.inlined;
  a.reduction_phases -= b.reduction_phases;
  return a;
}

Counters process_counters() {
  const std::scoped_lock lock(mutex);
  return total;
}

Counters counters_of(const std::function<void()>& fn) {
  check_callable(fn);
  const Counters before = process_counters();
  fn();
  return process_counters() - before;
}

void add_to_process(const Counters& more) {
  const std::scoped_lock lock(mutex);
  total += more;
}

}  // namespace fuse
