#pragma once

#include <c10/core/GradMode.h>
#include <torch/optim/optimizer.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/compile/turn.h"
#include "fusebook/libtorch/states.h"
#include "fusebook/libtorch/stepper.h"
#include "fusebook/reports/counters.h"
#include "fusebook/reports/guard_report.h"

namespace fuse::libtorch {

/// A `torch::optim::Optimizer` that steps all its parameters in one launch, where
/// they lie. Groups, options, `state()`, saving, loading, closures and LibTorch's
/// schedulers are as with LibTorch's own class, where there is one of that name;
/// `state()` shows the memory that is stepped. `Kind` is one of namespace `kinds`.
template <class Kind>
class Optimizer : public Kind::Base {
 public:
  using Options = typename Kind::Options;

  /// Takes tensors in host memory, which stay the caller's. Messages and reports
  /// name the place of this call. Throws Error for parameters that cannot be
  /// stepped (undefined, sparse, of integers, on another device, with elements that
  /// share memory) and options that make no sense.
  explicit Optimizer(
      std::vector<at::Tensor> params, Options options = {},
      std::source_location place = std::source_location::current())
      : Optimizer(
            std::vector<::torch::optim::OptimizerParamGroup>{
                ::torch::optim::OptimizerParamGroup(std::move(params))},
            std::move(options), place) {}
  explicit Optimizer(
      std::vector<::torch::optim::OptimizerParamGroup> groups,
      Options options = {},
      std::source_location place = std::source_location::current())
      : Kind::Base(std::move(groups), std::move(options)),
        engine_(std::make_unique<Engine>(place)) {
    engine_->take(*this);
  }

  /// One update of all parameters that have a gradient, after `closure`, which
  /// computes the loss; returns the loss. Groups, options, states and the tensors
  /// themselves may have changed since the last step. Throws Error for what cannot
  /// be stepped (a gradient that is sparse or of another shape, a parameter that
  /// was resized, a state that does not fit) and passes on exceptions of the
  /// closure; then no parameter and no state has changed.
  at::Tensor step(typename Kind::Base::LossClosure closure = nullptr) override {
    at::Tensor loss;
    if (closure != nullptr) {
      const c10::AutoGradMode recorded(true);
      loss = closure();
    }
    engine().step(*this);
    return loss;
  }

  /// Takes the state of this class, or of LibTorch's of that name. Throws
  /// LibTorch's errors and, for what is of another class and for states that do not
  /// fit, Error; then nothing has changed.
  void load(::torch::serialize::InputArchive& archive) override {
    const Before before(*this);
    try {
      Kind::Base::load(archive);
      engine().take(*this);
    } catch (...) {
      before.put_back(*this);
      throw;
    }
  }

  /// Updates parameters in bfloat16 and half in float32, and rounds the parameter and
  /// each state once: see fuse::Optimizer::use_opmath. For all groups, also those that
  /// are added later. May be switched between two steps.
  void use_opmath(bool on = true) { engine().use_opmath(on); }

  /// Launches, compilations, recompiles and more, of all steps so far.
  const Counters& counters() const { return engine().compiled().counters(); }
  /// Why each recompile happened, the oldest first.
  std::vector<std::string> recompile_reports() const {
    std::vector<std::string> texts;
    for (const auto& each : engine().compiled().recompile_reports()) {
      texts.push_back(to_string(each));
    }
    return texts;
  }
  /// What the last step fused and, if something was not fused, why.
  std::string report() const { return engine().compiled().report(); }

 private:
  // Stays where it is when the optimizer is moved.
  class Engine {
   public:
    explicit Engine(std::source_location place)
        : stepper_(place), states_(stepper_) {}

    void take(Optimizer& own) {
      const Turn turn(busy_);
      if (stepper_.take(own.param_groups_)) states_.follow(own.param_groups_);
      states_.look_at(own.param_groups_);
      states_.take(own.param_groups_, own.state_, true);
    }
    void step(Optimizer& own) {
      const Turn turn(busy_);
      if (stepper_.take(own.param_groups_)) states_.follow(own.param_groups_);
      states_.look_at(own.param_groups_);
      stepper_.collect([&]() noexcept { states_.walk(own.state_); });
      states_.take(own.param_groups_, own.state_, false);
      stepper_.run();
      stepper_.params().note_writes([&]() noexcept { states_.count(); });
      states_.give(own.param_groups_, own.state_);
    }
    void use_opmath(bool on) {
      const Turn turn(busy_);
      stepper_.use_opmath(on);
    }
    const auto& compiled() const { return stepper_.compiled(); }

   private:
    detail::Stepper<Kind> stepper_;
    detail::States<Kind> states_;
    std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  };

  // What loading replaces.
  class Before {
   public:
    explicit Before(Optimizer& own) {
      for (const auto& [key, state] : own.state_) states_[key] = state->clone();
      for (const auto& group : own.param_groups_) {
        options_.push_back(group.options().clone());
      }
    }
    void put_back(Optimizer& own) const {
      own.state_.clear();
      for (const auto& [key, state] : states_) own.state_[key] = state->clone();
      for (std::size_t g = 0; g < options_.size(); ++g) {
        own.param_groups_[g].set_options(options_[g]->clone());
      }
    }

   private:
    detail::StateMap states_;
    std::vector<std::unique_ptr<::torch::optim::OptimizerOptions>> options_;
  };

  Engine& engine() const {
    if (engine_ != nullptr) return *engine_;
    throw Error(
        "this optimizer was moved from; use the one that has its parameters");
  }

  std::unique_ptr<Engine> engine_;
};

}  // namespace fuse::libtorch
