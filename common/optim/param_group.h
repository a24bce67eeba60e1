#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scalar.h"
#include "tensor.h"

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
  /// Says which hyper-parameters of which group these are, for reports.
  void name_numbers(int group);
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

/// Checks what torch.optim checks: no parameter twice, all defined. Throws
/// Error.
void check_parameters(const std::vector<const ParamGroup*>& groups);

}  // namespace fuse
