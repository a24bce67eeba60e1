#include "fusebook/programs/policy.h"

#include "fusebook/support/error.h"
#include "fusebook/support/join.h"

namespace fuse {

Policy policy_named(const std::string& name) {
  for (std::size_t i = 0; i < policy_names.size(); ++i) {
    if (name == policy_names[i]) return Policy(i);
  }
  throw Error("unknown policy \"" + name + "\"; use one of " +
              join(policy_names));
}

}  // namespace fuse
