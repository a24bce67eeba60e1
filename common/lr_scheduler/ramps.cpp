#include "fusebook/lr_scheduler/ramps.h"

#include <fmt/core.h>

#include <cmath>

#include "fusebook/support/error.h"
#include "fusebook/support/number_text.h"

namespace fuse {
namespace {

void check_total_iters(const char* scheduler, std::int64_t total_iters) {
  if (total_iters >= 0) return;
  throw Error(fmt::format("{}: total_iters cannot be negative, but is {}",
                          scheduler, number_text(total_iters)));
}

}  // namespace

void ConstantLROptions::validate(std::size_t /*groups*/) const {
  if (!(factor >= 0 && factor <= 1)) {
    throw Error(
        fmt::format("ConstantLR: Constant multiplicative factor expected to be "
                    "between 0 and 1, but is {}",
                    number_text(factor)));
  }
  check_total_iters(name, total_iters);
}

double ConstantLROptions::next_lr(const Moment& now) const {
  if (now.epoch == 0) return now.lr * factor;
  if (now.epoch != total_iters) return now.lr;
  if (factor == 0) {
    throw Error(fmt::format(
        "ConstantLR: cannot restore the rate at epoch {} after a factor of 0; "
        "use a small factor instead",
        number_text(total_iters)));
  }
  return now.lr * (1.0 / factor);
}

double ConstantLROptions::restart_lr(const Moment& now) const {
  return now.base_lr * (factor + (total_iters == 0 ? 1 - factor : 0));
}

void LinearLROptions::validate(std::size_t /*groups*/) const {
  if (!(start_factor > 0 && start_factor <= 1)) {
    throw Error(
        fmt::format("LinearLR: Starting multiplicative factor expected to be "
                    "greater than 0 and less or equal to 1, but is {}",
                    number_text(start_factor)));
  }
  if (!(end_factor >= 0 && end_factor <= 1)) {
    throw Error(
        fmt::format("LinearLR: Ending multiplicative factor expected to be "
                    "between 0 and 1, but is {}",
                    number_text(end_factor)));
  }
  check_total_iters(name, total_iters);
}

double LinearLROptions::next_lr(const Moment& now) const {
  if (now.epoch == 0) return now.lr * start_factor;
  if (now.initial || now.epoch > total_iters) return now.lr;
  // Neither the closed form nor a simplified one: the last digits match
  // torch's.
  const double change = end_factor - start_factor;
  return now.lr * (1.0 + change / (double(total_iters) * start_factor +
                                   double(now.epoch - 1) * change));
}

void PolynomialLROptions::validate(std::size_t /*groups*/) const {
  check_total_iters(name, total_iters);
  if (!(power >= 0)) {
    throw Error(fmt::format("PolynomialLR: power cannot be negative, but is {}",
                            number_text(power)));
  }
}

double PolynomialLROptions::next_lr(const Moment& now) const {
  if (now.initial || now.epoch > total_iters) return now.lr;
  // Only as the second part of a SequentialLR whose milestone is 0.
  if (total_iters == 0) return now.lr;
  const double total = double(total_iters);
  return now.lr * std::pow((1.0 - double(now.epoch) / total) /
                               (1.0 - double(now.epoch - 1) / total),
                           power);
}

}  // namespace fuse
