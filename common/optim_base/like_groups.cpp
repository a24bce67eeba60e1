#include "fusebook/optim_base/like_groups.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "fusebook/optim_base/joined_numbers.h"

namespace fuse {

bool equal_specs(std::span<const StateSpec> a, std::span<const StateSpec> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const StateSpec& x, const StateSpec& y) {
                      return std::string_view(x.name) == y.name &&
                             x.rate == y.rate && x.dtype == y.dtype &&
                             x.beside_master == y.beside_master &&
                             x.nonnegative == y.nonnegative &&
                             x.min_8bit_size == y.min_8bit_size &&
                             x.state_block_size == y.state_block_size;
                    });
}

namespace {

// What the groups of a set have in common.
struct Kind {
  const GroupToUpdate* first;
  std::vector<bool> numbers;

  bool takes(const GroupToUpdate& other,
             const std::vector<bool>& numbers_of_other) const {
    return numbers == numbers_of_other &&
           same_specs(first->specs, other.specs) &&
           first->group->is_like(*other.group);
  }
};

// With few groups, each keeps its own lists, which fuse with lists that a user
// makes of a group; joining them would gain little.
std::vector<std::vector<std::size_t>> without_small_sets(
    const std::vector<std::vector<std::size_t>>& sets) {
  constexpr std::size_t fewest_joined = 8;
  std::vector<std::vector<std::size_t>> kept;
  for (const auto& set : sets) {
    if (set.size() >= fewest_joined) {
      kept.push_back(set);
    } else {
      for (const std::size_t g : set) kept.push_back({g});
    }
  }
  return kept;
}

}  // namespace

std::vector<std::vector<std::size_t>> like_groups(
    std::span<const GroupToUpdate> groups) {
  // With more kinds than this, groups stay alone: comparing them all would take
  // too long.
  constexpr std::size_t most_kinds = 64;
  std::vector<std::vector<std::size_t>> sets;
  std::vector<Kind> kinds;
  std::vector<std::size_t> set_of_kind;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::vector<bool> numbers;
    if (groups[g].group->foreach ()) numbers = kind_of(*groups[g].group);
    const auto known = std::find_if(
        kinds.begin(), kinds.end(),
        [&](const Kind& kind) { return kind.takes(groups[g], numbers); });
    if (known != kinds.end()) {
      sets[set_of_kind[known - kinds.begin()]].push_back(g);
      continue;
    }
    if (!numbers.empty() && kinds.size() < most_kinds) {
      kinds.push_back({&groups[g], std::move(numbers)});
      set_of_kind.push_back(sets.size());
    }
    sets.push_back({g});
  }
  return without_small_sets(sets);
}

}  // namespace fuse
