#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fusebook/ir/pieces.h"
#include "fusebook/ir/plan.h"

namespace fuse {

/// True when some body was made from the operations of a piece, whatever became
/// of the scalars.
bool has_body_for(const Plan& kernel, const Piece& piece);

/// The plan for running a program, cut into pieces, with the kernel of another
/// one: every piece goes through a body that is there, whatever their number and
/// order. Nothing where one of them fits none.
std::optional<Plan> fit(const Plan& kernel, const Program& program,
                        std::span<const Piece> pieces);

/// A number that a body bakes with another value than a piece made of the same
/// operations has.
struct MovedNumber {
  const ScalarUse* baked;  ///< in the body
  std::int32_t scalar;     ///< of the program
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
