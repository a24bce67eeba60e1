#pragma once

#include <string>

#include "fusebook/ir/plan.h"

namespace fuse {

/// What a plan fuses, for people: for each body its operations once a launch,
/// once a tensor and once an element, the lists it loads and stores, and the
/// bytes that takes.
std::string describe(const Plan& plan);
/// The same for one body.
std::string describe(const Body& body);

}  // namespace fuse
