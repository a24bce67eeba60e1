#include "fusebook/programs/policy.h"

#include "fusebook/support/error.h"

namespace fuse {

Policy policy_named(const std::string& name) {
  std::string known;
  for (std::size_t i = 0; i < policy_names.size(); ++i) {
    if (name == policy_names[i]) return Policy(i);
    known.append(i == 0 ? "" : ", ").append(policy_names[i]);
  }
  throw Error("there is no policy \"" + name + "\"; use one of " + known);
}

}  // namespace fuse
