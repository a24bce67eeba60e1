#include "fusebook/trace/list_places.h"

#include <algorithm>

namespace fuse {

void ListPlaces::clear() {
  places_.clear();
  runs_.clear();
}

void ListPlaces::add(std::uintptr_t begin, std::uintptr_t end) {
  runs_.push_back(places_.size());
  places_.push_back({begin, end, end, places_.size()});
  bool joined = false;
  while (runs_.size() > 1) {
    const std::size_t last = runs_.size() - 1;
    const std::size_t size = end_of(last) - runs_[last];
    if (runs_[last] - runs_[last - 1] > size) break;
    runs_.pop_back();
    joined = true;
  }
  if (joined) sort_run(runs_.size() - 1);
}

void ListPlaces::sort_run(std::size_t run) {
  const auto first = places_.begin() + std::ptrdiff_t(runs_[run]);
  std::sort(first, places_.end(),
            [](const Place& a, const Place& b) { return a.begin < b.begin; });
  std::uintptr_t reach = 0;
  for (auto place = first; place != places_.end(); ++place) {
    reach = std::max(reach, place->end);
    place->reach = reach;
  }
}

// The first place of a run that begins at or after `end`.
std::size_t ListPlaces::find(std::size_t run, std::uintptr_t end) const {
  const auto first = places_.begin() + std::ptrdiff_t(runs_[run]);
  const auto last = places_.begin() + std::ptrdiff_t(end_of(run));
  const auto found = std::lower_bound(
      first, last, end, [](const Place& place, std::uintptr_t address) {
        return place.begin < address;
      });
  return std::size_t(found - places_.begin());
}

}  // namespace fuse
