#pragma once

#include <span>

#include "fusebook/trace/scalar.h"

namespace fuse {

/// Rejects a hyper-parameter as the constructors of torch.optim do: throws
/// Error, such as "SGD: invalid momentum value: -1", unless `valid`.
void check_argument(const char* optimizer, const char* what,
                    const Scalar& value, bool valid);

/// Throws Error unless `value` is at least 0; NaN is rejected too.
void check_not_negative(const char* optimizer, const char* what,
                        const Scalar& value);

/// Throws Error unless every beta is at least 0 and less than 1.
void check_betas(const char* optimizer, std::span<const Scalar> betas);

}  // namespace fuse
