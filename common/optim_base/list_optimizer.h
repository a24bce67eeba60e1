#pragma once

#include <cstddef>
#include <source_location>
#include <span>
#include <utility>
#include <vector>

#include "fusebook/optim_base/each_scalar.h"
#include "fusebook/optim_base/like_groups.h"
#include "fusebook/optim_base/optimizer.h"
#include "fusebook/optim_base/same_options.h"
#include "fusebook/optim_base/set_options.h"
#include "fusebook/support/call_place.h"

namespace fuse {

/// An optimizer whose step is written once, as operations on lists.
template <class Options>
class ListOptimizer : public Optimizer {
 public:
  /// A group of parameters with the options of this optimizer.
  class Group : public ParamGroup {
   public:
    /// Takes all options from the optimizer it is added to.
    Group(std::vector<Tensor> tensors)  // NOLINT(google-explicit-constructor)
        : ParamGroup(std::move(tensors)) {}
    Group(NamedParams named)  // NOLINT(google-explicit-constructor)
        : ParamGroup(std::move(named)) {}
    /// Keeps these options, whatever the optimizer's are.
    Group(std::vector<Tensor> tensors, Options wanted)
        : ParamGroup(std::move(tensors)),
          options(std::move(wanted)),
          complete_(true) {}
    Group(NamedParams named, Options wanted)
        : ParamGroup(std::move(named)),
          options(std::move(wanted)),
          complete_(true) {}

    bool foreach () const override { return options.foreach; }
    bool is_like(const ParamGroup& other) const override {
      return storage() == other.storage() &&
             same_but_numbers(options,
                              static_cast<const Group&>(other).options);
    }

    Options options;  ///< What a step reads; may be changed between steps.

   protected:
    void visit_scalars(FunctionRef<void(const Named&)> visit) override {
      each_scalar(options, [&](const char* name, int index, Scalar& s) {
        visit({name, index, &s});
      });
    }
    void visit_flags(FunctionRef<void(const char*, bool&)> visit) override {
      options.for_each_flag(visit);
    }

   private:
    friend class ListOptimizer;
    void fill_in(const Options& defaults) {
      if (complete_) return;
      complete_ = true;
      Options own = std::exchange(options, defaults);
      keep_set_options(own, options);
    }
    bool complete_ = false;  // has its own options
  };

  explicit ListOptimizer(std::vector<Tensor> params, Options options = {})
      : ListOptimizer(std::vector<Group>{Group(std::move(params))},
                      std::move(options)) {}
  /// Named parameters, which checkpoints match by name.
  explicit ListOptimizer(NamedParams params, Options options = {})
      : ListOptimizer(std::vector<Group>{Group(std::move(params))},
                      std::move(options)) {}
  /// Groups without their own options get `options`.
  explicit ListOptimizer(std::vector<Group> groups, Options options = {})
      : defaults(std::move(options)), param_groups(std::move(groups)) {
    defaults.validate();
    for (Group& group : param_groups) {
      group.fill_in(defaults);
      group.options.validate();
    }
    check_groups();
  }

  /// Adds parameters, as in torch. Options not named in the call keep the
  /// values given to the constructor:
  ///
  ///     opt.add_param_group(head.parameters(), {{"lr", 0.1}});
  ///
  /// Make schedulers afterwards: existing ones throw Error at their next step.
  /// Throws Error, and changes nothing, for a parameter that is already in a
  /// group, and for anything the constructor rejects.
  void add_param_group(
      std::vector<Tensor> params, const GroupOptions& options = {},
      std::source_location place = std::source_location::current()) {
    add(Group(std::move(params)), options, place);
  }
  void add_param_group(
      NamedParams params, const GroupOptions& options = {},
      std::source_location place = std::source_location::current()) {
    add(Group(std::move(params)), options, place);
  }
  /// The same for a group, which may have its own options.
  void add_param_group(Group group, std::source_location place =
                                        std::source_location::current()) {
    add(std::move(group), {}, place);
  }

  /// Number of parameter groups.
  std::size_t group_count() const final { return param_groups.size(); }
  Group& group(std::size_t index, std::source_location place =
                                      std::source_location::current()) final {
    check_group(index, place);
    param_groups[index].fill_in(defaults);
    return param_groups[index];
  }
  const Group& group(std::size_t index,
                     std::source_location place =
                         std::source_location::current()) const final {
    check_group(index, place);
    return param_groups[index];
  }

  /// The options given to the constructor.
  Options defaults;
  /// Groups, their parameters and options; may be changed between two steps. One
  /// that is pushed here without options takes those of the constructor, as
  /// add_param_group does: at the next step, or when group() is asked for it.
  /// Numbers and switches that were set until then stay.
  std::vector<Group> param_groups;

 protected:
  /// The states kept for each parameter; a table that outlives the optimizer.
  virtual std::span<const StateSpec> state_specs(
      const Options& options) const = 0;
  /// The update of all tensors of a batch, as operations on its lists and
  /// nothing else: it may be called more than once per step. Groups that differ
  /// only in their numbers form one batch, in which one Scalar stands for all
  /// values of a number that differs. If the update reads its value, it is
  /// called once for each set of groups with the same value.
  virtual void update(const Options& options, const Batch& batch) const = 0;

 private:
  void add(Group group, const GroupOptions& options,
           std::source_location place) {
    const CallPlace call(place);
    group.fill_in(defaults);
    group.set(options);
    group.options.validate();
    check_joining(group);
    param_groups.push_back(std::move(group));
  }

  std::span<const StateSpec> specs_of(std::size_t group) const final {
    return specs_of(param_groups[group]);
  }
  std::span<const StateSpec> specs_of(const Group& group) const {
    auto specs = state_specs(group.options);
    if (group.master_weights || group.split_masters) {
      specs = with_masters(specs, group.split_masters);
    } else if (group.stochastic_rounding) {
      specs = with_rounding_keys(specs, group.rounding_seed);
    }
    if (!group.states_8bit) return specs;
    return with_8bit_states(specs, group.min_8bit_size, group.state_block_size);
  }
  void gather_groups(std::vector<GroupToUpdate>& groups) final {
    groups.clear();
    for (Group& each : param_groups) {
      each.fill_in(defaults);
      groups.push_back({&each, specs_of(each)});
    }
  }
  void update_group(std::size_t group, std::span<const Scalar> numbers,
                    const Batch& batch) const final {
    if (numbers.empty()) return update(param_groups[group].options, batch);
    Options joined = param_groups[group].options;
    auto next = numbers.begin();
    each_scalar(joined,
                [&](const char*, int, Scalar& number) { number = *next++; });
    update(joined, batch);
  }
};

}  // namespace fuse
