// The settings that tests put optimizers to, each with its published formula.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/optim/all.h"
#include "fusebook/tensor/tensor.h"
#include "support/optimizer_formulas.h"

namespace optimizer_rules {

/// The update of one element, given its gradient and which step this is.
using Rule = std::function<void(Element&, double grad, double step)>;

/// One setting of all options of one optimizer.
struct Case {
  std::string label;
  std::function<std::unique_ptr<fuse::Optimizer>(std::vector<fuse::Tensor>)>
      make;
  std::function<fuse::Tensor(const fuse::Optimizer&, const fuse::Tensor&,
                             const std::string&)>
      state;
  Rule rule;
  /// What Element::state starts from.
  std::array<double, 3> start{};
};

struct OptimizerRow {
  std::string name;
  std::vector<const char*> states;  ///< in the order of Element::state
  std::vector<Case> cases;          ///< the first has all defaults but the lr
  /// It reads norms, so that its rule holds for tensors of one element.
  bool reads_norms = false;
};

// ---- single numbers ---------------------------------------------------------

/// A parameter with one element.
inline fuse::Tensor single(double value,
                           fuse::DType dtype = fuse::DType::float32) {
  return fuse::full({1}, value, dtype);
}
/// Gives it a gradient, or another one.
inline void set_grad(fuse::Tensor param, double value) {
  if (!param.grad().defined()) param.set_grad(fuse::zeros_like(param));
  param.grad().fill_(value);
}

inline double first_of(const fuse::Tensor& tensor) {
  return tensor.to_vector()[0];
}

/// Within a few roundings of numbers around the larger of `exact` and one.
inline bool close(double value, double exact, fuse::DType dtype) {
  const double unit = dtype == fuse::DType::float32 ? 0x1p-24 : 0x1p-53;
  return std::abs(value - exact) <= 12 * unit * std::max(1.0, std::abs(exact));
}

/// A setting with the rule of its options.
template <class Kind, class Options>
Case make_case(const std::string& label, const Options& options,
               std::array<double, 3> start = {}) {
  return {label,
          [options](std::vector<fuse::Tensor> params) {
            return std::make_unique<Kind>(std::move(params), options);
          },
          [](const fuse::Optimizer& optimizer, const fuse::Tensor& param,
             const std::string& name) {
            return static_cast<const Kind&>(optimizer).state(param, name);
          },
          [options](Element& x, double grad, double step) {
            apply(options, x, grad, step);
          },
          start};
}

/// Calls visit.template operator()<Kind>(options) for every optimizer of the
/// table, with options of which none is off.
template <class Visit>
void for_each_kind(Visit visit) {
  using namespace fuse;
  visit.template operator()<SGD>(SGDOptions{
      .lr = 0.05, .momentum = 0.9, .dampening = 0.25, .weight_decay = 0.1});
  visit.template operator()<NAdam>(NAdamOptions{.weight_decay = 0.1});
  visit.template operator()<RAdam>(
      RAdamOptions{.weight_decay = 0.1, .decoupled_weight_decay = true});
  visit.template operator()<Adamax>(AdamaxOptions{.weight_decay = 0.1});
  visit.template operator()<Adagrad>(AdagradOptions{
      .lr_decay = 0.1, .weight_decay = 0.1, .initial_accumulator_value = 0.25});
  visit.template operator()<Adadelta>(AdadeltaOptions{.weight_decay = 0.1});
  visit.template operator()<RMSprop>(
      RMSpropOptions{.weight_decay = 0.1, .momentum = 0.5, .centered = true});
  visit.template operator()<Rprop>(RpropOptions{});
  visit.template operator()<ASGD>(
      ASGDOptions{.lambd = 0.1, .t0 = 2.0, .weight_decay = 0.1});
  visit.template operator()<AdEMAMix>(
      AdEMAMixOptions{.t_alpha = 10.0, .t_beta3 = 10.0, .weight_decay = 0.1});
  visit.template operator()<LAMB>(LAMBOptions{.weight_decay = 0.1});
  visit.template operator()<LARS>(
      LARSOptions{.weight_decay = 0.1, .trust_coefficient = 0.02});
}

/// Every optimizer but Adam and AdamW, which have tests of their own.
const std::vector<OptimizerRow>& table();

}  // namespace optimizer_rules
