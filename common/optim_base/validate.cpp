#include "fusebook/optim_base/validate.h"

#include <fmt/core.h>

#include <string>

#include "fusebook/support/call_place.h"
#include "fusebook/support/error.h"
#include "fusebook/support/number_text.h"

namespace fuse {

void check_argument(const char* optimizer, const char* what,
                    const Scalar& value, bool valid) {
  if (valid) return;
  throw Error(fmt::format("{}: invalid {}: {}{}", optimizer, what,
                          number_text(value.value()), at_call()));
}

void check_not_negative(const char* optimizer, const char* what,
                        const Scalar& value) {
  check_argument(optimizer, what, value, value.value() >= 0);
}

void check_betas(const char* optimizer, std::span<const Scalar> betas) {
  for (std::size_t i = 0; i < betas.size(); ++i) {
    const std::string what = fmt::format("beta parameter at index {}", i);
    const double beta = betas[i].value();
    check_argument(optimizer, what.c_str(), betas[i], beta >= 0 && beta < 1);
  }
}

}  // namespace fuse
