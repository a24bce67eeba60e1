#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fuse {

/// The address ranges of lists: finds those near an address without visiting
/// all of them, even while more are added. Allocates nothing once it has
/// reached its size.
class ListPlaces {
 public:
  void clear();
  std::size_t size() const { return places_.size(); }
  /// Adds the next list: bytes from `begin` up to, but not including, `end`.
  void add(std::uintptr_t begin, std::uintptr_t end);

  /// Calls visit(list) with the index of each list that overlaps these bytes,
  /// until it returns true; true if it did.
  template <class Visit>
  bool any_of(std::uintptr_t begin, std::uintptr_t end, Visit visit) const {
    for (std::size_t r = 0; r < runs_.size(); ++r) {
      for (std::size_t i = find(r, end); i-- > runs_[r];) {
        const Place& place = places_[i];
        if (place.reach <= begin) break;
        if (place.end > begin && visit(place.list)) return true;
      }
    }
    return false;
  }

 private:
  // `reach` is the maximum end of this and all previous places of its run.
  struct Place {
    std::uintptr_t begin;
    std::uintptr_t end;
    std::uintptr_t reach;
    std::size_t list;
  };

  std::size_t find(std::size_t run, std::uintptr_t end) const;
  std::size_t end_of(std::size_t run) const {
    return run + 1 < runs_.size() ? runs_[run + 1] : places_.size();
  }
  void sort_run(std::size_t run);

  std::vector<Place> places_;      // sorted runs, each longer than the next
  std::vector<std::size_t> runs_;  // where each starts
};

}  // namespace fuse
