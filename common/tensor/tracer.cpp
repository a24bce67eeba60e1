#include "fusebook/tensor/tracer.h"

#include <atomic>
#include <utility>

namespace fuse {
namespace {

thread_local Tracer* current_tracer = nullptr;

}  // namespace

Tracer* Tracer::current() { return current_tracer; }

Tracer* Tracer::make_current(Tracer* tracer) {
  return std::exchange(current_tracer, tracer);
}

std::uint64_t Tracer::next_serial() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace fuse
