#pragma once

#include "fusebook/ir/plan.h"

namespace fuse {

/// Called with every plan that a compiled function makes, before its kernel is
/// built.
using PlanObserver = void (*)(const Plan& plan);

/// Sets that of this process, or none by null.
void set_plan_observer(PlanObserver observer);

/// Calls it, if there is one.
void observe_plan(const Plan& plan);

}  // namespace fuse
