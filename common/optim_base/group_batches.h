#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "fusebook/ir/stored_memory.h"
#include "fusebook/optim_base/batch.h"
#include "fusebook/optim_base/gradient_source.h"
#include "fusebook/optim_base/joined_numbers.h"
#include "fusebook/optim_base/param_group.h"
#include "fusebook/optim_base/state_store.h"
#include "fusebook/runtime/bound_lists.h"

namespace fuse {

/// A group, and what is kept for each of its parameters: a table that lives on.
struct GroupToUpdate {
  ParamGroup* group;
  std::span<const StateSpec> specs;
};

/// A batch with the groups that its tensors are from.
struct JoinedBatch {
  Batch batch;
  std::vector<std::size_t> groups;  ///< in ascending order
  std::vector<std::size_t> params;  ///< where they stand among all parameters
  JoinedNumbers numbers;            ///< of several groups; none for one
  bool is_new = true;               ///< since it was rehearsed
  std::uint64_t rehearsed = 0;      ///< where the gradients were then
};

/// Sets of groups whose tensors may go into one list, by their numbers: eight
/// groups or more that differ in hyper-parameters alone.
std::vector<std::vector<std::size_t>> like_groups(
    std::span<const GroupToUpdate> groups);

/// The batches of all groups of an optimizer, kept from step to step. Groups that
/// differ in numbers alone are updated together, unless they share memory: then
/// their order counts.
class GroupBatches {
 public:
  /// What is no longer as it was when the batches were made, the most that
  /// differs.
  enum class Change {
    nothing,  ///< but where the gradients are, and numbers
    batches,  ///< other parameters have a gradient, or options have changed
    params,   ///< other parameters
  };
  /// Calls the update for a batch without doing anything; false if that needs
  /// values of the parameters.
  using Try = std::function<bool(JoinedBatch&)>;

  /// Says what has changed, in a few nanoseconds a parameter and a group. Where
  /// it is nothing, the lists of gradients are those of the gradients now, and the
  /// numbers those of now; all other lists stay as they are.
  Change refresh(std::span<const GroupToUpdate> groups, const StateStore& store,
                 const GradientSource& gradients, const Try& try_update);
  /// Makes the batches for the parameters that have a gradient now, and states
  /// that they miss.
  void rebuild(std::span<const GroupToUpdate> groups, StateStore& store,
               const GradientSource& gradients, const Try& try_update);
  /// All parameters that have a gradient, as they stand in the lists of the next
  /// step.
  std::vector<std::vector<Tensor>> params_by_list(
      std::span<const GroupToUpdate> groups) const;
  /// How many groups there were when the batches were made.
  std::size_t group_count() const { return known_.size(); }
  /// How many parameters of such a group are updated.
  std::size_t updated(std::size_t group) const { return known_[group].updated; }
  std::span<JoinedBatch> batches() { return batches_; }
  std::span<const JoinedBatch> batches() const { return batches_; }

 private:
  static constexpr std::uint64_t unfinished = UINT64_MAX;
  using Sets = std::vector<std::vector<std::size_t>>;
  using Groups = std::span<const GroupToUpdate>;
  struct Member {
    std::size_t group;
    std::size_t param;  // among all
  };

  struct Known {
    std::size_t first_param = 0;
    std::span<const StateSpec> specs;
    bool foreach = true;
    std::size_t like = 0;     // the first group of its set
    bool joined = false;      // is updated together with others
    std::size_t updated = 0;  // so many parameters had a gradient
  };

  bool same_params(Groups groups) const;
  bool same_options(Groups groups) const;
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
  std::span<ParamGroup* const> members_of(
      Groups groups, const std::vector<std::size_t>& wanted);
  bool are_apart();
  bool touches(const JoinedBatch& each);
  static std::optional<std::vector<std::uint64_t>> find_split(
      JoinedBatch& batch, const Try& try_update);
  void split_batches(Groups groups, const StateStore& store,
                     const GradientSource& gradients, const Try& try_update);
  static std::vector<Member> members_in(const JoinedBatch& batch,
                                        const std::vector<std::size_t>& set);

  std::vector<Tensor> params_;        // of all groups
  std::vector<std::size_t> without_;  // those that had no gradient
  std::vector<Known> known_;
  std::uint64_t version_ = unfinished;  // of the states
  std::vector<JoinedBatch> batches_;
  StoredMemory stored_;    // what steps write, where some batch is of several
  bool joins_ = false;     // some batch is of several groups
  GradientSource source_;  // how gradients were found
  std::vector<void*> addresses_;      // of one batch
  std::vector<ParamGroup*> members_;  // of the batch that is looked at
};

}  // namespace fuse
