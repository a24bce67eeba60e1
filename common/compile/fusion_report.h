#pragma once

#include <cstdint>
#include <source_location>
#include <string>

#include "fusebook/compile/compiled_function.h"

namespace fuse {

/// What the last call of a function fused into its launches and, if there are
/// several launches or several loops in one, why.
std::string fusion_report(const Function& function);

/// Throws Error with the report unless the last call made exactly that many
/// launches, or if there was no call.
void check_launches(const Function& function, std::int64_t launches,
                    std::source_location place);

}  // namespace fuse
