#pragma once

#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include "fusebook/codegen/emit_body.h"
#include "fusebook/compile/compiled_function.h"
#include "fusebook/reports/log.h"

namespace fuse {

/// What the last call of a function fused into its launches and, if there are
/// several launches or several loops in one, why.
std::string fusion_report(const Function& function);

/// Throws Error with the report unless the last call made exactly that many
/// launches, or if there was no call.
void check_launches(const Function& function, std::int64_t launches,
                    std::source_location place);

/// The generated code of a plan, annotated with the places where it was
/// written, and the list of those places.
std::string code_text(const Plan& plan, Target target = Target::cpu);
std::vector<LogPlace> code_places(const Plan& plan);

/// The program before and after planning, as text and for Graphviz: one message
/// of the `graph` log.
std::string graph_text(const std::string& function, const Program& program,
                       const Plan& plan);

}  // namespace fuse
