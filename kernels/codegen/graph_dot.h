#pragma once

#include <string>

#include "fusebook/ir/plan.h"

namespace fuse {

/// A recorded program as a Graphviz digraph: leaves, operations, stores. Dashed
/// is what is computed once a launch or once a tensor.
std::string dot(const Program& program, const std::string& name);
/// The same for a plan: one cluster a body, with the names of the code.
std::string dot(const Plan& plan, const std::string& name);

}  // namespace fuse
