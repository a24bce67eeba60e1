#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fusebook/support/function_ref.h"
#include "fusebook/tensor/tensor.h"
#include "fusebook/trace/facts.h"
#include "fusebook/trace/scalar.h"

namespace fuse {

/// Parameters with their names, as a model's `named_parameters()` returns them.
using NamedParams = std::vector<std::pair<std::string, Tensor>>;

/// The value of an option, a number or a switch, named as in torch.optim:
/// `{{"lr", 0.1}, {"betas[0]", tensor(0.8)}, {"amsgrad", true}}`.
using OptionValue = std::variant<bool, Scalar>;
/// Options by name, in any order; those not named keep their values.
using GroupOptions = std::vector<std::pair<std::string, OptionValue>>;

/// How a group keeps its weights and states.
struct GroupStorage {
  /// See Optimizer::use_master_weights.
  bool master_weights = false;
  /// See Optimizer::use_split_masters.
  bool split_masters = false;
  /// See Optimizer::use_stochastic_rounding.
  bool stochastic_rounding = false;
  /// What the random bits of parameters without a step begin with.
  std::uint32_t rounding_seed = 0;
  /// See Optimizer::use_opmath.
  bool opmath = false;
  /// See Optimizer::use_8bit_states.
  bool states_8bit = false;
  /// Parameters with fewer elements keep their states as they are.
  std::int64_t min_8bit_size = 4096;
  /// How many neighbours of a state in 8 bits share a scale.
  std::int64_t state_block_size = block_size;

  /// Whether parameters in 16 bits are updated in float32.
  bool updates_in_float32() const {
    return master_weights || split_masters || stochastic_rounding || opmath;
  }
  /// Its switches that checkpoints and state dicts hold while they are on.
  struct Switch {
    const char* name;         ///< In state dicts.
    bool GroupStorage::* on;  ///< Where it is.
    /// True if states depend on it, so that what is loaded must have it.
    bool has_states = true;
  };
  static std::span<const Switch> saved_switches();  ///< All of them.

  bool operator==(const GroupStorage&) const = default;
  /// Throws Error, with a message starting with `place`, for a negative size
  /// and for blocks that cannot be.
  void check_sizes(const std::string& place) const;
};

/// Parameters that share their hyper-parameters.
class ParamGroup : public GroupStorage {
 public:
  explicit ParamGroup(std::vector<Tensor> tensors)
      : params(std::move(tensors)) {}
  explicit ParamGroup(NamedParams named);
  virtual ~ParamGroup() = default;

  /// A hyper-parameter by its name in torch.optim: "lr", "eps", "betas[0]".
  /// Throws Error listing the known names.
  Scalar& operator[](const std::string& name);
  /// The same, or null if this optimizer has no such hyper-parameter.
  Scalar* find(const std::string& name);
  /// All hyper-parameters by name, in the order of the options.
  std::vector<std::pair<std::string, Scalar*>> numbers();
  /// The options that can be switched on or off, such as "amsgrad".
  std::vector<std::pair<std::string, bool*>> flags();
  /// The same with all of GroupStorage::saved_switches, which `flags` has only while
  /// they are on.
  std::vector<std::pair<std::string, bool*>> switches();
  /// Sets options, including "initial_lr" and what `switches` has besides. Throws
  /// Error for an unknown name, or for a number where a switch is expected; then
  /// nothing has changed.
  void set(const GroupOptions& values);
  /// Throws whatever `set` would throw.
  void check(const GroupOptions& values);
  /// Tells the numbers their names and group, for reports.
  void name_numbers(int group);
  /// How the group keeps its weights and states, to compare it or set it whole.
  const GroupStorage& storage() const { return *this; }
  GroupStorage& storage() { return *this; }
  /// Adds all options, for reports that explain recompiles.
  void tell(Facts& facts);
  /// False if the tensors are updated one by one.
  virtual bool foreach () const = 0;
  /// True if this group differs from another one of the same optimizer only in
  /// numbers, names and parameters.
  virtual bool is_like(const ParamGroup& other) const = 0;

  /// A hyper-parameter with its name, a string literal.
  struct Named {
    const char* name;
    int index;  ///< -1 for a single number
    Scalar* scalar;
  };
  /// Calls visit(named) for each hyper-parameter, in the order of the options.
  template <class Visit>
  void for_each_number(Visit& visit) {
    visit_scalars(visit);
  }

  std::vector<Tensor> params;  ///< The parameters of the group.
  /// Names of the parameters, in the same order, or empty.
  std::vector<std::string> param_names;
  /// The learning rate that schedules start from: a separate number, set by the
  /// first scheduler, that stays the same while a tensor `lr` moves.
  std::optional<double> initial_lr;

 protected:
  ParamGroup(const ParamGroup&) = default;
  ParamGroup& operator=(const ParamGroup&) = default;
  /// Calls visit(named) for each hyper-parameter.
  virtual void visit_scalars(FunctionRef<void(const Named&)> visit) = 0;
  /// Calls visit(name, on) for each switch.
  virtual void visit_flags(FunctionRef<void(const char*, bool&)> visit) = 0;

 private:
  std::vector<Named> scalars();
  void check_option(const std::string& name, const OptionValue& value);
};

/// "parameter 3 of group 0", followed by its name if it has one.
std::string describe_param(const std::vector<const ParamGroup*>& groups,
                           std::size_t group, std::size_t param);

/// Checks what torch.optim checks: every parameter is defined and appears once,
/// all have names or none has, and no two share a name. Throws Error.
void check_parameters(const std::vector<const ParamGroup*>& groups);

}  // namespace fuse
