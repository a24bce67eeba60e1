#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scalar.h"
#include "tensor.h"
#include "tensor_list.h"

namespace fuse {

/// Parameters that share their hyper-parameters.
class ParamGroup {
 public:
  explicit ParamGroup(std::vector<Tensor> tensors)
      : params(std::move(tensors)) {}
  virtual ~ParamGroup() = default;

  /// A hyper-parameter by its name in torch.optim: "lr", "eps", "betas[0]".
  /// Throws Error naming the known ones.
  Scalar& operator[](const std::string& name);
  /// The same, or null where this optimizer has no such hyper-parameter.
  Scalar* find(const std::string& name);
  /// All hyper-parameters by name, in the order of the options.
  std::vector<std::pair<std::string, Scalar*>> numbers();
  /// The options that are switched on or off, such as "amsgrad".
  virtual std::vector<std::pair<std::string, bool>> flags() const = 0;
  /// False when the tensors are updated one after the other.
  virtual bool foreach () const = 0;

  std::vector<Tensor> params;
  /// The learning rate that schedules start from: a number of its own, set by
  /// the first scheduler, that stays as it is while a tensor `lr` moves.
  std::optional<double> initial_lr;

 protected:
  ParamGroup(const ParamGroup&) = default;
  ParamGroup& operator=(const ParamGroup&) = default;
  struct Named {
    const char* name;
    int index;  ///< -1 for a single number
    Scalar* scalar;
  };
  /// Calls visit(context, named) for each hyper-parameter.
  virtual void visit_scalars(void* context,
                             void (*visit)(void*, const Named&)) = 0;
  std::vector<Named> scalars();
};

/// A state that an optimizer keeps for each parameter: a tensor like it, or
/// (at Rate::entry) one number in float64. The names are string literals.
struct StateSpec {
  const char* name;
  double initial = 0;
  Rate rate = Rate::element;
  /// The hyper-parameter it starts from instead of `initial`, such as "lr".
  const char* initial_from = nullptr;
};

/// What is kept for one parameter, by name; "step" is its step count. Empty
/// before its first step.
using ParamStates = std::map<std::string, Tensor, std::less<>>;

/// Throws Error, beginning with `place`, unless these states could be those of
/// `param`: known names, one number or as many as the parameter has.
void check_states(const std::string& place, const Tensor& param,
                  std::span<const StateSpec> specs, const ParamStates& states);

/// Everything that takes part in one step, list by list: tensors of one group
/// and one dtype that have a gradient.
struct Batch {
  TensorList params;
  TensorList grads;
  TensorList steps;                ///< float64 step counts, one a parameter
  std::vector<TensorList> states;  ///< in the order of the StateSpecs
  std::vector<const char*> names;  ///< of the states

  /// A state by its name, for optimizers that do not always keep the same ones.
  const TensorList& state(std::string_view name) const;
};

/// The same states with the values that they start from in a group.
std::vector<StateSpec> with_initials(std::span<const StateSpec> specs,
                                     ParamGroup& group);

/// Checks what torch.optim checks: at least one parameter, none twice, all
/// defined. Throws Error.
void check_parameters(const std::vector<const ParamGroup*>& groups);

/// Lists of one group, kept as long as the same gradients are there.
class BatchCache {
 public:
  /// True when the batches still are those of `params`, their gradients and
  /// these states.
  bool current(const std::vector<Tensor>& params,
               std::span<const StateSpec> specs, bool foreach) const;
  /// Makes the batches for the parameters that have a gradient now. With
  /// `foreach` one for each dtype, else one for each parameter. Creates missing
  /// state.
  void rebuild(const std::vector<Tensor>& params,
               std::span<const StateSpec> specs, bool foreach);
  const std::vector<Batch>& batches() const { return batches_; }
  /// State of a parameter by name ("step" too); undefined before its first
  /// step.
  Tensor state(const Tensor& param, const std::string& name) const;
  /// All states of a parameter.
  ParamStates states(const Tensor& param) const;
  /// Makes these the states of the parameters; they were checked. Copied into
  /// the tensors that are there; kept where there are none yet. A state that is
  /// not among them is dropped.
  void restore(const std::vector<Tensor>& params,
               const std::vector<ParamStates>& states);

 private:
  struct ParamState {
    Tensor param;  // held, so that no other tensor gets its address
    Tensor step;
    ParamStates tensors;
  };

  void create_steps(const std::vector<Tensor>& params);
  void create_missing(const std::vector<Tensor>& params, const StateSpec& spec);
  void add_batch(const std::vector<Tensor>& params,
                 std::span<const StateSpec> specs);

  std::unordered_map<const TensorImpl*, ParamState> states_;
  std::vector<const char*> names_;
  std::vector<Tensor> params_;
  std::vector<Tensor> grads_;  // of the parameters, undefined for none
  bool foreach_ = true;
  std::vector<Batch> batches_;
};

/// What every optimizer can do, whatever its options: what schedulers and
/// training loops need.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// One update of all parameters that have a gradient.
  virtual void step() = 0;
  virtual std::size_t group_count() const = 0;
  /// A parameter group with its hyper-parameters.
  virtual ParamGroup& group(std::size_t index) = 0;
  virtual const ParamGroup& group(std::size_t index) const = 0;

  /// The name of its class, such as "Adam".
  std::string name() const;
  /// How often `step` was called.
  std::int64_t steps() const { return steps_; }
  /// What is kept for a parameter of a group, for checkpoints: they read it,
  /// check what a file holds, and put that in place of it.
  virtual ParamStates states(std::size_t group, std::size_t param) const = 0;
  virtual void check_states(const std::string& place, std::size_t group,
                            std::size_t param,
                            const ParamStates& states) const = 0;
  virtual void restore_states(std::size_t group,
                              const std::vector<ParamStates>& states) = 0;
  void restore_steps(std::int64_t steps) { steps_ = steps; }

  /// The parameters of all groups, in order.
  std::vector<Tensor> parameters() const;
  /// Removes the gradients, or sets them to zero (recorded inside `compile`).
  void zero_grad(bool set_to_none = true) const;

 protected:
  Optimizer() = default;
  Optimizer(const Optimizer&) = default;
  Optimizer& operator=(const Optimizer&) = default;
  Optimizer(Optimizer&&) = default;
  Optimizer& operator=(Optimizer&&) = default;

  std::int64_t steps_ = 0;
};

/// An optimizer whose step is written once, as operations on lists.
template <class Options>
class ListOptimizer : public Optimizer {
 public:
  struct Group : ParamGroup {
    Group(std::vector<Tensor> tensors, Options wanted = {})
        : ParamGroup(std::move(tensors)), options(std::move(wanted)) {}
    std::vector<std::pair<std::string, bool>> flags() const override {
      std::vector<std::pair<std::string, bool>> all;
      options.for_each_flag(
          [&](const char* name, bool on) { all.emplace_back(name, on); });
      return all;
    }
    bool foreach () const override { return options.foreach; }
    Options options;

   protected:
    friend class ListOptimizer;
    void visit_scalars(void* context,
                       void (*visit)(void*, const Named&)) override {
      options.for_each_scalar([&](const char* name, int index, Scalar& s) {
        visit(context, {name, index, &s});
      });
    }
  };

  explicit ListOptimizer(std::vector<Group> groups)
      : param_groups(std::move(groups)), caches_(param_groups.size()) {
    std::vector<const ParamGroup*> all;
    for (const Group& group : param_groups) {
      group.options.validate();
      all.push_back(&group);
    }
    check_parameters(all);
  }

  void step() override {
    ++steps_;
    for (std::size_t g = 0; g < param_groups.size(); ++g) {
      Options& options = param_groups[g].options;
      options.for_each_scalar([&](const char* name, int index, Scalar& s) {
        Origin origin = s.origin();
        origin.name = name;
        origin.index = index;
        origin.group = int(g);
        s.set_origin(origin);
      });
      const auto& params = param_groups[g].params;
      BatchCache& cache = caches_[g];
      const auto specs = state_specs(options);
      if (!cache.current(params, specs, options.foreach)) {
        cache.rebuild(params, with_initials(specs, param_groups[g]),
                      options.foreach);
      }
      for (const Batch& batch : cache.batches()) update(options, batch);
    }
  }

  std::size_t group_count() const override { return param_groups.size(); }
  Group& group(std::size_t index) override { return param_groups.at(index); }
  const Group& group(std::size_t index) const override {
    return param_groups.at(index);
  }

  /// A state tensor, such as state(param, "exp_avg") or state(param, "step");
  /// undefined before the parameter's first step.
  Tensor state(const Tensor& param, const std::string& name) const {
    for (const BatchCache& cache : caches_) {
      if (Tensor found = cache.state(param, name); found.defined()) {
        return found;
      }
    }
    return {};
  }

  ParamStates states(std::size_t group, std::size_t param) const override {
    return caches_.at(group).states(param_groups.at(group).params.at(param));
  }
  void check_states(const std::string& place, std::size_t group,
                    std::size_t param,
                    const ParamStates& states) const override {
    const Group& own = param_groups.at(group);
    fuse::check_states(place, own.params.at(param), state_specs(own.options),
                       states);
  }
  void restore_states(std::size_t group,
                      const std::vector<ParamStates>& states) override {
    caches_.at(group).restore(param_groups.at(group).params, states);
  }

  std::vector<Group> param_groups;

 protected:
  /// What the optimizer keeps for each parameter; a table that lives on.
  virtual std::span<const StateSpec> state_specs(
      const Options& options) const = 0;
  virtual void update(const Options& options, const Batch& batch) const = 0;

 private:
  std::vector<BatchCache> caches_;
};

}  // namespace fuse
