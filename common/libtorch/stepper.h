#pragma once

#include <torch/optim/optimizer.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/libtorch/params.h"
#include "fusebook/optim_base/optimizer.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/tensor.h"

namespace fuse::libtorch::detail {

using Groups = std::vector<::torch::optim::OptimizerParamGroup>;

/// Steps parameters of LibTorch by an optimizer of ours. `Kind` says which one, and
/// how options and states are called on both sides.
template <class Kind>
class Stepper {
 public:
  using Own = typename Kind::Own;

  explicit Stepper(std::source_location place)
      : optimizer_(std::vector<Tensor>{empty({0})}),  // none is without
        place_(place),
        step_(compile(std::function<void()>([this] { step_once(); }),
                      {.name = std::string(Kind::name) + ".step"}, place)) {}

  /// Takes groups and options as they are now. Throws Error for parameters that
  /// cannot be stepped, and for options of new groups that make no sense; then
  /// nothing has changed. True if parameters came or went.
  bool take(Groups& groups);
  /// Finds the gradients; see Params::collect.
  template <class Beside>
  void collect(Beside beside) {
    params_.collect(beside);
  }
  /// Steps what was collected.
  void run();
  /// For all groups, also those to come.
  void use_opmath(bool on) {
    opmath_ = on;
    optimizer_.use_opmath(on);
  }

  const Params& params() const { return params_; }
  Own& optimizer() { return optimizer_; }
  const Own& optimizer() const { return optimizer_; }
  const Compiled<std::function<void()>>& compiled() const { return step_; }

 private:
  using Lists = std::vector<const std::vector<at::Tensor>*>;

  void take_params(const Lists& lists, Groups& groups);
  void take_options(std::size_t g, ::torch::optim::OptimizerParamGroup& group);
  void step_once();

  Own optimizer_;
  std::source_location place_;
  Lists lists_;
  Params params_;
  std::vector<std::vector<double>> known_;  // each group's options, as numbers
  bool opmath_ = false;
  Compiled<std::function<void()>> step_;
};

/// The options of a group. Throws Error for those of another optimizer.
template <class Kind>
typename Kind::Options& options_of(::torch::optim::OptimizerParamGroup& group,
                                   std::size_t g) {
  auto* const own =
      group.has_options()
          ? dynamic_cast<typename Kind::Options*>(&group.options())
          : nullptr;
  if (own != nullptr) return *own;
  throw Error(c10::str(Kind::name, ": the options of group ", g, " are not ",
                       Kind::name, "Options"));
}

/// The same, by the names that optimizers of ours use.
template <class Kind>
GroupOptions named_options(const typename Kind::Options& options) {
  GroupOptions found;
  Kind::options(options, [&](const auto& name, auto value) {
    if constexpr (std::is_same_v<decltype(value), bool>) {
      found.emplace_back(name, value);
    } else {
      found.emplace_back(name, Scalar(double(value)));
    }
  });
  return found;
}

template <class Kind>
std::vector<double> numbers_of(const typename Kind::Options& options) {
  std::vector<double> found;
  Kind::options(options, [&](const auto& /*name*/, auto value) {
    found.push_back(double(value));
  });
  return found;
}

template <class Kind>
void Stepper<Kind>::take_params(const Lists& lists, Groups& groups) {
  Params params = params_;
  params.set(lists);
  std::vector<typename Own::Group> made;
  std::vector<const ParamGroup*> listed;
  std::vector<std::vector<double>> known;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto& options = options_of<Kind>(groups[g], g);
    typename Own::Group group(params.group(g), Kind::defaults());
    group.set(named_options<Kind>(options));
    group.options.validate();
    group["lr"].set_moves();
    group.opmath = opmath_;
    made.push_back(std::move(group));
    known.push_back(numbers_of<Kind>(options));
  }
  for (const auto& group : made) listed.push_back(&group);
  check_parameters(listed);
  optimizer_.param_groups = std::move(made);
  params_ = std::move(params);
  known_ = std::move(known);
}

template <class Kind>
void Stepper<Kind>::take_options(std::size_t g,
                                 ::torch::optim::OptimizerParamGroup& group) {
  const auto& options = options_of<Kind>(group, g);
  bool same = true;
  std::size_t next = 0;
  Kind::options(options, [&](const auto& /*name*/, auto value) {
    same = same && known_[g][next] == double(value);
    ++next;
  });
  if (same) return;
  ParamGroup& own = optimizer_.group(g);
  for (const auto& [name, value] : named_options<Kind>(options)) {
    if (const Scalar* const number = std::get_if<Scalar>(&value)) {
      own[name].assign(number->value());  // it moves, and needs no recompile
    } else {
      own.set({{name, value}});
    }
  }
  known_[g] = numbers_of<Kind>(options);
}

template <class Kind>
bool Stepper<Kind>::take(Groups& groups) {
  lists_.clear();
  for (auto& group : groups) lists_.push_back(&group.params());
  if (!params_.are(lists_)) {
    take_params(lists_, groups);
    return true;
  }
  for (std::size_t g = 0; g < groups.size(); ++g) take_options(g, groups[g]);
  return false;
}

template <class Kind>
void Stepper<Kind>::step_once() {
  if (params_.need_gradients()) {
    optimizer_.step(place_);
  } else {
    optimizer_.step(GradientAddresses{params_.addresses(), {}}, place_);
  }
}

template <class Kind>
void Stepper<Kind>::run() {
  // Gradients that are held for one step; they go when it is done, or has failed.
  struct Hold {
    explicit Hold(const Params& own) : params(own) {
      if (!params.need_gradients()) return;
      const std::vector<Tensor> all = params.gradients();
      for (std::size_t i = 0; i < all.size(); ++i) {
        tensors.push_back(params.tensor(i));
        tensors.back().set_grad(all[i]);
      }
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold() {
      for (Tensor& each : tensors) each.set_grad(Tensor());
    }
    const Params& params;
    std::vector<Tensor> tensors;
  } const hold(params_);
  step_();
}

}  // namespace fuse::libtorch::detail
