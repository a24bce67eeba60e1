#include "fusebook/lr_scheduler/state.h"

#include <fmt/core.h>

#include <cmath>

#include "fusebook/support/error.h"
#include "fusebook/support/number_text.h"

namespace fuse {
namespace {

constexpr double kLargestCount = 0x1p53;

}  // namespace

const std::vector<double>& StateFields::stored(const char* name,
                                               std::size_t size) const {
  const std::string place = "state of " + state_.kind + ": ";
  const auto found = state_.values.find(name);
  if (found == state_.values.end()) {
    throw Error(place + "\"" + name + "\" is missing");
  }
  if (found->second.size() != size) {
    throw Error(fmt::format(
        "{}\"{}\" holds {} numbers instead of {}; the optimizer had a "
        "different number of parameter groups",
        place, name, found->second.size(), size));
  }
  return found->second;
}

std::vector<double> StateFields::exchange(const char* name,
                                          const std::vector<double>& list) {
  ++seen_;
  if (mode_ == Mode::save) {
    state_.values[name] = list;
    return list;
  }
  const std::vector<double>& kept = stored(name, list.size());
  return mode_ == Mode::load ? kept : list;
}

double StateFields::flat(double number) {
  if (mode_ == Mode::put_back) {
    // Groups added since keep their numbers.
    return next_ < numbers_->size() ? (*numbers_)[next_++] : number;
  }
  numbers_->push_back(number);
  return number;
}

void StateFields::operator()(const char* name, double& number) {
  if (flat()) {
    number = flat(number);
    return;
  }
  number = exchange(name, {number})[0];
}

void StateFields::operator()(const char* name, std::vector<double>& list) {
  if (flat()) {
    list.resize(std::size_t(flat(double(list.size()))));
    for (double& number : list) number = flat(number);
    return;
  }
  list = exchange(name, list);
}

void StateFields::operator()(const char* name, std::int64_t& count) {
  if (flat()) {
    count = std::int64_t(flat(double(count)));
    return;
  }
  if (mode_ == Mode::check) {
    const double kept = stored(name, 1)[0];
    if (std::trunc(kept) != kept || std::abs(kept) > kLargestCount) {
      throw Error(
          fmt::format("state of {}: \"{}\" is {}, which is not a valid count",
                      state_.kind, name, number_text(kept)));
    }
  }
  count = std::int64_t(exchange(name, {double(count)})[0]);
}

void StateFields::check_no_others() const {
  if (state_.values.size() == seen_) return;
  throw Error(fmt::format(
      "state of {}: has {} named values instead of {}; it is not from this "
      "scheduler",
      state_.kind, state_.values.size(), seen_));
}

}  // namespace fuse
