#pragma once

#include <string>

#include "fusebook/codegen/emit_body.h"
#include "fusebook/ir/plan.h"

namespace fuse {

/// The operations and bodies of a plan for a target.
std::string bodies_text(const Plan& plan, Target target, PlaceText place_text);

/// `declaration` for each body, with its number for "@b@".
std::string for_each_body(const Plan& plan, const char* declaration);

/// `call` for each body: a plain call for one, a switch over what `which` says
/// for several.
std::string dispatch(const Plan& plan, const std::string& which,
                     const std::string& call);

}  // namespace fuse
