// Groups that an update treats differently do not share a batch.
#include <iterator>
#include <map>
#include <optional>
#include <ranges>

#include "fusebook/optim_base/group_batches.h"

namespace fuse {
namespace {

// Sets of groups that gave the same answer, ordered by their first group.
std::vector<std::vector<std::size_t>> agreeing(
    const std::vector<std::uint64_t>& answers) {
  std::vector<std::vector<std::size_t>> sets;
  std::map<std::uint64_t, std::size_t> set_of;
  for (std::size_t g = 0; g < answers.size(); ++g) {
    const auto [set, is_new] = set_of.try_emplace(answers[g], sets.size());
    if (is_new) sets.emplace_back();
    sets[set->second].push_back(g);
  }
  return sets;
}

std::vector<std::uint64_t> each_its_own(std::size_t groups) {
  std::vector<std::uint64_t> answers(groups);
  for (std::size_t g = 0; g < groups; ++g) answers[g] = g;
  return answers;
}

}  // namespace

// Tries the update of a batch. If its groups gave different answers, returns
// them.
std::optional<std::vector<std::uint64_t>> GroupBatches::find_split(
    JoinedBatch& batch, const Try& try_update) {
  ColumnReads tried;
  try {
    if (!try_update(batch)) return each_its_own(batch.groups.size());
  } catch (const GroupsDiffer& differ) {
    return differ.answers;
  }
  batch.numbers.set_reads(tried.reads);
  return std::nullopt;
}

void GroupBatches::split_batches(Groups groups, const StateStore& store,
                                 const GradientSource& gradients,
                                 const Try& try_update) {
  std::vector<JoinedBatch> open(std::make_move_iterator(batches_.rbegin()),
                                std::make_move_iterator(batches_.rend()));
  batches_.clear();
  while (!open.empty()) {
    JoinedBatch batch = std::move(open.back());
    open.pop_back();
    const auto answers =
        batch.groups.size() > 1 ? find_split(batch, try_update) : std::nullopt;
    if (!answers) {
      batches_.push_back(std::move(batch));
      continue;
    }
    const auto sets = agreeing(*answers);
    for (const auto& set : std::views::reverse(sets)) {
      open.push_back(join(groups, members_in(batch, set), store, gradients));
    }
  }
}

// The tensors of a batch that come from the given groups.
std::vector<GroupBatches::Member> GroupBatches::members_in(
    const JoinedBatch& batch, const std::vector<std::size_t>& set) {
  std::vector<Member> members;
  const auto& of_tensor = batch.numbers.places().of_tensor;
  auto next = set.begin();
  for (std::size_t i = 0; i < of_tensor.size(); ++i) {
    while (next != set.end() && *next < std::size_t(of_tensor[i])) ++next;
    if (next == set.end() || *next != std::size_t(of_tensor[i])) continue;
    members.push_back({batch.groups[*next], batch.params[i]});
  }
  return members;
}

}  // namespace fuse
