// The table of schedulers: how each is made, and its schedule as published,
// computed in another way than the library does.
#pragma once

#include <numbers>
#include <vector>

#include "support/lr_scheduler_testing.h"

namespace lr_testing {

using Real = long double;
using Rates = std::vector<Real>;

constexpr Real pi = std::numbers::pi_v<Real>;

/// All schedulers; a new one is one row more.
const std::vector<ScheduleRow>& rows();

}  // namespace lr_testing
