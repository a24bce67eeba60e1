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

#include "fusebook/ir/program.h"
#include "fusebook/optim_base/param_group.h"
#include "fusebook/tensor/tensor.h"

namespace fuse {

/// A state that an optimizer keeps for each parameter: a tensor like it, or
/// (at Rate::entry) one number in float64. The names are string literals. A
/// state has the same dtype at every step.
struct StateSpec {
  const char* name;           ///< as `Optimizer::state` takes it
  double initial = 0;         ///< what every element starts at
  Rate rate = Rate::element;  ///< one number an element, or an entry
  /// The hyper-parameter it starts from instead of `initial`, such as "lr".
  const char* initial_from = nullptr;
  /// Of a tensor; without it that of the parameter. Where dtypes meet in an
  /// operation, its result has the one that holds them all.
  std::optional<DType> dtype = {};
};

/// What is kept for one parameter, by name; "step" is its step count. Empty
/// before its first step.
using ParamStates = std::map<std::string, Tensor, std::less<>>;

/// Throws Error, beginning with `place`, unless these states could be those of
/// `param`: known names, one number or as many as the parameter has.
void check_states(const std::string& place, const Tensor& param,
                  std::span<const StateSpec> specs, const ParamStates& states);

/// The same states with the values that they start from in a group.
std::vector<StateSpec> with_initials(std::span<const StateSpec> specs,
                                     ParamGroup& group);

/// What one optimizer keeps for its parameters. It belongs to the parameter, in
/// whichever group that stands, and also while it stands in none.
class StateStore {
 public:
  struct Entry {
    Tensor param;  ///< held, so that no other tensor gets its address
    Tensor step;
    ParamStates tensors;
  };

  /// Makes what is missing for these parameters.
  void create(std::span<const Tensor> params, std::span<const StateSpec> specs);
  /// What is kept for a parameter, or null.
  const Entry* find(const Tensor& param) const;
  /// State of a parameter by name ("step" too); undefined before its first
  /// step.
  Tensor state(const Tensor& param, std::string_view name) const;
  /// All states of a parameter.
  ParamStates states(const Tensor& param) const;
  /// Makes these the states of a parameter; they were checked. Copied into the
  /// tensors that are there; kept where there are none yet. A state that is not
  /// among them is dropped.
  void restore(const Tensor& param, const ParamStates& states);
  /// Gives states of these parameters that are not kept yet memory of their own,
  /// as `create` would make it, while an error still changes nothing.
  void prepare(const std::vector<Tensor>& params,
               std::vector<ParamStates>& states) const;
  /// What was made since the last `keep` stays, or goes.
  void keep() { made_.clear(); }
  void take_back();
  /// Forgets parameters that nobody else holds any more.
  void drop_unreachable();
  /// Another number when a tensor that was here may have gone.
  std::uint64_t version() const { return version_; }

 private:
  void create_steps(std::span<const Tensor> params);
  void create_states(std::span<const Tensor> params, const StateSpec& spec);

  struct Made {
    const TensorImpl* param;
    const char* name;  // null for the step count: nothing was kept before
  };

  std::unordered_map<const TensorImpl*, Entry> entries_;
  std::vector<Made> made_;
  std::uint64_t version_ = 0;
};

}  // namespace fuse
