#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "fusebook/optim_base/batch_memory.h"
#include "fusebook/optim_base/gradient_source.h"
#include "fusebook/optim_base/joined_batch.h"
#include "fusebook/optim_base/like_groups.h"
#include "fusebook/optim_base/param_group.h"
#include "fusebook/optim_base/state_store.h"
#include "fusebook/runtime/bound_lists.h"
#include "fusebook/trace/number_changes.h"

namespace fuse {

/// The batches of all groups of an optimizer, kept from step to step. Groups
/// that differ only in their numbers are updated together, unless they share
/// memory: then their order matters.
class GroupBatches {
 public:
  /// What has changed since the batches were made; the largest change wins.
  enum class Change {
    nothing,  ///< at most gradient addresses and numbers
    batches,  ///< other parameters have a gradient, or options have changed
    params,   ///< the set of parameters has changed
  };
  /// Runs the update of a batch without any effect; false if it needs values of
  /// the parameters.
  using Try = std::function<bool(JoinedBatch&)>;

  /// Says what has changed, in a few nanoseconds per parameter and group. If
  /// the answer is `nothing`, the lists of gradients and the numbers are now up
  /// to date; all other lists stay as they are.
  Change refresh(std::span<const GroupToUpdate> groups, const StateStore& store,
                 const GradientSource& gradients, const Try& try_update);
  /// True if the same parameters have a gradient as when the batches were made.
  bool is_of(const GradientSource& gradients) const;
  /// Makes the batches for the parameters that have a gradient now, and any
  /// missing states.
  void rebuild(std::span<const GroupToUpdate> groups, StateStore& store,
               const GradientSource& gradients, const Try& try_update);
  /// All parameters that have a gradient, grouped as in the lists of the next
  /// step.
  std::vector<std::vector<Tensor>> params_by_list(
      std::span<const GroupToUpdate> groups) const;
  /// True if these batches serve the next step, with the gradients that the
  /// parameters hold.
  bool serves(std::span<const GroupToUpdate> groups) const;
  /// The parameters of the lists that a step makes anew.
  static std::vector<std::vector<Tensor>> new_lists(
      std::span<const GroupToUpdate> groups);
  /// Number of groups when the batches were made.
  std::size_t group_count() const { return known_.size(); }
  /// Number of parameters of this group that are updated.
  std::size_t updated(std::size_t group) const { return known_[group].updated; }
  std::span<JoinedBatch> batches() { return batches_; }
  std::span<const JoinedBatch> batches() const { return batches_; }

 private:
  static constexpr std::uint64_t unfinished = UINT64_MAX;
  using Sets = std::vector<std::vector<std::size_t>>;
  using Groups = std::span<const GroupToUpdate>;
  struct Member {
    std::size_t group;
    std::size_t param;  // index among all
  };

  struct Known {
    const ParamGroup* group = nullptr;
    std::size_t first_param = 0;
    std::size_t params = 0;
    std::span<const StateSpec> specs;
    bool foreach = true;
    bool opmath = false;
    std::size_t like = 0;     // the first group of its set
    bool joined = false;      // updated together with others
    std::size_t updated = 0;  // number of parameters that had a gradient
  };

  Change compare(Groups groups) const;
  bool has_params(const Known& known, const ParamGroup& group) const;
  bool has_options(Groups groups, std::size_t g) const;
  bool take_numbers(Groups groups, const Try& try_update);
  bool follow(const GradientSource& gradients);
  fuse::Change follow(JoinedBatch& each, const GradientSource& gradients);
  std::span<void* const> gather(std::span<const std::size_t> params,
                                const GradientSource& gradients);
  void name_single_groups(Groups groups) const;

  void remember(Groups groups, const GradientSource& gradients);
  void create_states(Groups groups, const std::vector<std::size_t>& set,
                     StateStore& store, const GradientSource& gradients);
  void make_batches(Groups groups, const Sets& sets, const StateStore& store,
                    const GradientSource& gradients);
  std::size_t group_of(std::size_t param) const;
  JoinedBatch join(Groups groups, const std::vector<Member>& members,
                   const StateStore& store, const GradientSource& gradients);
  static std::vector<ParamGroup*> members_of(
      Groups groups, const std::vector<std::size_t>& wanted);
  static std::optional<std::vector<std::uint64_t>> find_split(
      JoinedBatch& batch, const Try& try_update);
  void split_batches(Groups groups, const StateStore& store,
                     const GradientSource& gradients, const Try& try_update);
  static std::vector<Member> members_in(const JoinedBatch& batch,
                                        const std::vector<std::size_t>& set);

  std::vector<Tensor> params_;        // of all groups
  std::vector<std::size_t> without_;  // indices of those without a gradient
  std::vector<Known> known_;
  std::uint64_t version_ = unfinished;  // of the states
  std::uint64_t moves_ = 0;             // of tensors
  std::vector<JoinedBatch> batches_;
  std::vector<std::size_t> single_;  // groups that are not joined
  BatchMemory memory_;               // empty if no batch spans several groups
  std::shared_ptr<NumberChanges> changes_;  // of all groups
  bool joins_ = false;                      // some batch spans several groups
  GradientSource source_;                   // how gradients were found
  std::vector<void*> addresses_;            // of one batch
};

}  // namespace fuse
