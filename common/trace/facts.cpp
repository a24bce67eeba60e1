#include "fusebook/trace/facts.h"

namespace fuse {

void Facts::collect() {
  for (const Waiting& each : waiting_) {
    steps_.push_back({each.optimizer, each.place, groups_.size()});
    if (const auto source = each.source.lock()) source->tell(*this);
  }
  waiting_.clear();
}

void Facts::clear() {
  waiting_.clear();
  steps_.clear();
  groups_.clear();
  options_.clear();
}

std::span<const Facts::Group> Facts::groups(std::size_t step) const {
  const std::size_t begin = steps_[step].first_group;
  const bool last = step + 1 == steps_.size();
  const std::size_t end = last ? groups_.size() : steps_[step + 1].first_group;
  return std::span(groups_).subspan(begin, end - begin);
}

std::span<const OptionFact> Facts::options(std::size_t step,
                                           std::size_t group) const {
  const std::size_t at = steps_[step].first_group + group;
  const std::size_t begin = groups_[at].first_option;
  const bool last = at + 1 == groups_.size();
  const std::size_t end = last ? options_.size() : groups_[at + 1].first_option;
  return std::span(options_).subspan(begin, end - begin);
}

}  // namespace fuse
