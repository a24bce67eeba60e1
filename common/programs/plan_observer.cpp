#include "fusebook/programs/plan_observer.h"

#include <atomic>

namespace fuse {
namespace {

std::atomic<PlanObserver> plan_observer = nullptr;

}  // namespace

void set_plan_observer(PlanObserver observer) {
  plan_observer.store(observer, std::memory_order_relaxed);
}

void observe_plan(const Plan& plan) {
  const PlanObserver observer = plan_observer.load(std::memory_order_relaxed);
  if (observer != nullptr) observer(plan);
}

}  // namespace fuse
