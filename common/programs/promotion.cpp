#include "fusebook/programs/promotion.h"

#include <algorithm>

#include "fusebook/ir/plan_reuse.h"

namespace fuse {

bool Promotion::may_bake(const Origin& origin) const {
  if (origin.moves && policy_ == Policy::promote) return false;
  if (origin.name != nullptr) return !names_;
  return std::none_of(others_.begin(), others_.end(), [&](const Origin& known) {
    return same_parameter(known, origin);
  });
}

void Promotion::promote(const Origin& origin) {
  if (!may_bake(origin)) return;
  if (origin.name != nullptr) {
    names_ = true;
  } else {
    others_.push_back(origin);
  }
}

void Promotion::promote(const Plan& known, const Program& program,
                        std::span<const Piece> pieces) {
  if (policy_ != Policy::promote) return;
  for (const MovedNumber& moved : moved_numbers(known, program, pieces)) {
    promote(moved.baked->origin);
  }
}

}  // namespace fuse
