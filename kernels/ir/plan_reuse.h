#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fusebook/ir/pieces.h"
#include "fusebook/ir/plan.h"

namespace fuse {

/// True if some body was made from the operations of a piece, however its
/// scalars are passed.
bool has_body_for(const Plan& kernel, const Piece& piece);

/// The plan for running a program, cut into pieces, with the kernel of another
/// one: every piece goes through an existing body, whatever their number and
/// order. nullopt if a piece fits no body.
std::optional<Plan> fit(const Plan& kernel, const Program& program,
                        std::span<const Piece> pieces);

/// A number that a body bakes with another value than in a piece with the same
/// operations.
struct MovedNumber {
  const ScalarUse* baked;  ///< baked in the body
  std::int32_t scalar;     ///< index in the program
};

/// All such numbers of one parameter (see same_parameter), in the order of the
/// bodies.
std::vector<MovedNumber> moved_numbers(const Plan& kernel,
                                       const Program& program,
                                       std::span<const Piece> pieces);

/// Adds the bodies of `known` that were made from other operations than those of
/// `plan`, without instances, so that the kernel also serves programs in which
/// they meet. What they bake stays baked where it may be.
void add_bodies(Plan& plan, const Plan& known, MayBake may_bake);

}  // namespace fuse
