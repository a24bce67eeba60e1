#include "fusebook/lr_scheduler/lambda.h"

#include <fmt/core.h>

#include "fusebook/support/error.h"
#include "fusebook/support/number_text.h"

namespace fuse {

void check_lambdas(const char* scheduler, const PerGroup<LRLambda>& lr_lambda,
                   std::size_t groups) {
  const std::string place = scheduler;
  if (!lr_lambda.given()) throw Error(place + " needs lr_lambda");
  if (lr_lambda.is_list() && lr_lambda.size() != groups) {
    throw Error(fmt::format("{}: Expected {} lr_lambdas, but got {}", place,
                            number_text(groups), lr_lambda.size()));
  }
  for (std::size_t i = 0; i < lr_lambda.size(); ++i) {
    if (!lr_lambda[i]) {
      throw Error(place + ": lr_lambda should be a function, but is empty");
    }
  }
}

}  // namespace fuse
