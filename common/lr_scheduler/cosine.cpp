#include "fusebook/lr_scheduler/cosine.h"

#include <fmt/core.h>

#include <cmath>
#include <numbers>

#include "fusebook/support/error.h"
#include "fusebook/support/number_text.h"

namespace fuse {
namespace {

constexpr double pi = std::numbers::pi;

}  // namespace

void CosineAnnealingLROptions::validate(std::size_t /*groups*/) const {
  if (T_max > 0) return;
  throw Error(
      fmt::format("CosineAnnealingLR: expected positive T_max, but got {}",
                  number_text(T_max)));
}

double CosineAnnealingLROptions::next_lr(const Moment& now) const {
  if (now.initial) return now.lr;
  const double period = double(T_max);
  // The step away from the minimum, where the quotient below would be 0 / 0.
  if ((now.epoch - 1 - T_max) % (2 * T_max) == 0) {
    return now.lr + (now.base_lr - eta_min) * (1 - std::cos(pi / period)) / 2;
  }
  return (1 + std::cos(pi * double(now.epoch) / period)) /
             (1 + std::cos(pi * double(now.epoch - 1) / period)) *
             (now.lr - eta_min) +
         eta_min;
}

double CosineAnnealingLROptions::restart_lr(const Moment& now) const {
  return eta_min + (now.base_lr - eta_min) * (1 + std::cos(0.0)) / 2;
}

void CosineAnnealingWarmRestartsOptions::validate(
    std::size_t /*groups*/) const {
  if (T_0 <= 0) {
    throw Error(
        fmt::format("CosineAnnealingWarmRestarts: Expected positive integer "
                    "T_0, but got {}",
                    number_text(T_0)));
  }
  if (T_mult < 1) {
    throw Error(fmt::format(
        "CosineAnnealingWarmRestarts: Expected integer T_mult >= 1, but got {}",
        number_text(T_mult)));
  }
}

double CosineAnnealingWarmRestartsOptions::next_lr(const Moment& now) const {
  return eta_min +
         (now.base_lr - eta_min) * (1 + std::cos(pi * T_cur / T_i)) / 2;
}

void CosineAnnealingWarmRestartsOptions::advance(std::int64_t epoch) {
  if (epoch == 0) {
    T_cur = 0;
    T_i = double(T_0);
    return;
  }
  if (T_i == 0) {  // resumed: the first step, made by the constructor
    T_cur = double(epoch - 1);
    T_i = double(T_0);
  }
  T_cur += 1;
  if (T_cur < T_i) return;
  T_cur = std::fmod(T_cur, T_i);
  T_i *= double(T_mult);
}

void CosineAnnealingWarmRestartsOptions::jump(double epoch) {
  T_cur = epoch;
  T_i = double(T_0);
  if (T_mult == 1) {
    T_cur = std::fmod(epoch, T_i);
    return;
  }
  // Cycle by cycle: a logarithm might miss the exact epoch of a restart.
  while (T_cur >= T_i) {
    T_cur -= T_i;
    T_i *= double(T_mult);
  }
}

void CosineAnnealingWarmRestartsOptions::visit_state(StateFields& fields) {
  fields("T_cur", T_cur);
  fields("T_i", T_i);
}

void CosineAnnealingWarmRestarts::step(double epoch) {
  if (!(epoch >= 0 && epoch <= 0x1p53)) {
    throw Error(fmt::format(
        "CosineAnnealingWarmRestarts: Expected non-negative epoch, but got {}",
        number_text(epoch)));
  }
  about_to_change();
  take_in_groups();
  rule().jump(epoch);
  apply(std::int64_t(std::floor(epoch)));
}

}  // namespace fuse
