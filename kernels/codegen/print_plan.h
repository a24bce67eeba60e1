#pragma once

#include <string>

#include "fusebook/ir/plan.h"

namespace fuse {

/// What a plan fuses, for people: for each body its operations once per launch,
/// once per tensor and once per element, the lists it loads and stores, and the
/// bytes that takes. Where there are several phases, one after the other.
std::string summary(const Plan& plan);
/// The same for one body.
std::string summary(const Body& body);

/// A recorded program as readable text, one line a node.
std::string listing(const Program& program);
/// The same for a plan: the operations of each body with the names they have in
/// the generated code, and where each was written.
std::string listing(const Plan& plan);

/// A recorded program as a Graphviz digraph: leaves, operations, stores. Dashed
/// is what is computed once per launch or once per tensor.
std::string graphviz(const Program& program, const std::string& name);
/// The same for a plan: one cluster a body, with the names of the code.
std::string graphviz(const Plan& plan, const std::string& name);

}  // namespace fuse
