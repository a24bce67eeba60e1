#include "fusebook/cpu/traffic.h"

#include <atomic>

namespace fuse {
namespace {

std::atomic<TrafficCounter*> living = nullptr;

}  // namespace

TrafficCounter::TrafficCounter() { living = this; }
TrafficCounter::~TrafficCounter() { living = nullptr; }

TrafficCounter* TrafficCounter::current() {
  return living.load(std::memory_order_relaxed);
}

void TrafficCounter::add(const void* tensor, Elements moved) {
  const std::scoped_lock lock(mutex_);
  Elements& sum = tensors_[tensor];
  sum.loads += moved.loads;
  sum.stores += moved.stores;
}

}  // namespace fuse
