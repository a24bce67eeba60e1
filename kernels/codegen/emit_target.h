#pragma once

#include <string>
#include <vector>

#include "fusebook/codegen/emit_body.h"
#include "fusebook/ir/plan.h"

namespace fuse {

/// The operations and bodies of a plan for a target.
std::string bodies_text(const Plan& plan, Target target, PlaceText place_text);

/// The numbers of the bodies that store, or of those that reduce.
std::vector<std::size_t> storing_bodies(const Plan& plan);
std::vector<std::size_t> reducing_bodies(const Plan& plan);

/// `declaration` for each of these bodies, with its number for "@b@".
std::string for_each_body(const std::vector<std::size_t>& bodies,
                          const char* declaration);

/// `call` for each of these bodies: a plain call for one, a switch over what
/// `which` says for several.
std::string dispatch(const std::vector<std::size_t>& bodies,
                     const std::string& which, const std::string& call);

}  // namespace fuse
