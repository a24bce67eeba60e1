#pragma once

#include <string>
#include <vector>

#include "fusebook/codegen/emit_body.h"
#include "fusebook/ir/plan.h"
#include "fusebook/reports/log.h"

namespace fuse {

/// The generated code of a plan, annotated with the places where it was
/// written, and the list of those places.
std::string code_text(const Plan& plan, Target target = Target::cpu);
std::vector<LogPlace> code_places(const Plan& plan);

/// The program before and after planning, as text and for Graphviz: one message
/// of the `graph` log.
std::string graph_text(const std::string& function, const Program& program,
                       const Plan& plan);

}  // namespace fuse
