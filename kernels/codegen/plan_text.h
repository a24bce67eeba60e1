#pragma once

#include <string>

#include "fusebook/ir/plan.h"

namespace fuse {

/// A plan as readable text: the operations of each body with the names they
/// have in the generated code, and where each was written.
std::string dump(const Plan& plan);

}  // namespace fuse
