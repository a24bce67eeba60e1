#pragma once

#include "fusebook/ir/plan.h"

namespace fuse {

/// Called with every plan that a compiled function makes, before its kernel is
/// built.
using PlanObserver = void (*)(const Plan& plan);

/// Sets the observer of this process; null removes it.
void set_plan_observer(PlanObserver observer);

/// Calls the observer, if there is one.
void observe_plan(const Plan& plan);

}  // namespace fuse
