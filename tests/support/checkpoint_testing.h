// What the tests of checkpoints share: training runs of every optimizer with
// every scheduler, and all their bits as text.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/optim/all.h"
#include "support/lion.h"
#include "support/lr_scheduler_rows.h"
#include "support/optimizer_rules.h"
#include "support/step_testing.h"

namespace checkpoint_testing {

using namespace fuse;
using lr_testing::Made;
using lr_testing::ScheduleRow;
using OptimizerPtr = std::unique_ptr<Optimizer>;

/// An optimizer, with numbers in one group or with 0-d tensors in two.
struct Kind {
  std::string name;
  bool has_momentum;  // that schedulers may cycle
  std::function<OptimizerPtr(bool tensors)> make;
};

/// What schedulers cycle, or null.
inline Scalar* momentum_of(ParamGroup& group) {
  Scalar* const beta1 = group.find("betas[0]");
  return beta1 != nullptr ? beta1 : group.find("momentum");
}

inline void make_tensor(Scalar& number, DType dtype = DType::float32) {
  number = Scalar(tensor(number.value(), dtype));
}

template <class Optim, class Options>
Kind make_kind(const Options& options) {
  using Group = typename Optim::Group;
  const auto make = [=](bool tensors) -> OptimizerPtr {
    std::vector<Group> groups;
    for (const std::size_t g : {0, 1}) {
      if (g == 1 && !tensors) break;
      const DType dtype = g == 0 ? DType::float32 : DType::float64;
      const auto shapes = step_testing::mixed_shapes(6 - g);
      groups.emplace_back(step_testing::make_params(shapes, g + 1, dtype),
                          options);
      groups.back()["lr"] = Scalar(g == 0 ? 0.01 : 0.003);
      if (!tensors) continue;
      make_tensor(groups.back()["lr"], dtype);
      if (Scalar* cycled = momentum_of(groups.back())) make_tensor(*cycled);
    }
    return std::make_unique<Optim>(std::move(groups));
  };
  const OptimizerPtr sample = make(false);
  return {sample->name(), momentum_of(sample->group(0)) != nullptr, make};
}

/// Every optimizer, with options that make it keep all it can.
inline const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = [] {
    std::vector<Kind> made;
    const auto add = [&]<class Optim>(const auto& options) {
      made.push_back(make_kind<Optim>(options));
    };
    add.template operator()<Adam>(AdamOptions{.amsgrad = true});
    add.template operator()<Adam>(AdamOptions{});
    add.template operator()<AdamW>(AdamWOptions{});
    add.template operator()<Lion>(LionOptions{});
    optimizer_rules::for_each_kind(add);
    return made;
  }();
  return all;
}

/// One optimizer with one scheduler, and the step that trains it.
class Run {
 public:
  Run(const Kind& kind, const ScheduleRow& row, bool tensors)
      : opt(kind.make(tensors)), sched(row.make(*opt, kind.has_momentum)) {}

  /// The steps from one to another, from 1; gradients depend on the step alone.
  template <class Step>
  void train(Step& step, int first, int last) {
    for (int n = first; n <= last; ++n) {
      testing::Random random(std::uint64_t(n) + 100);
      for (const Tensor& param : opt->parameters()) {
        param.grad().copy_(step_testing::random_tensor(param.shape(), random,
                                                       0.25, param.dtype()));
      }
      step();
      sched.step(n);
    }
  }

  OptimizerPtr opt;
  Made sched;
};

inline std::string hex(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%a ", value);
  return text;
}

/// Everything a run consists of, to the last bit.
inline std::string bits_of(Optimizer& opt, const SchedulerState& state) {
  std::string text = opt.name() + std::to_string(opt.steps());
  const auto add = [&](const std::string& name, const Tensor& tensor) {
    text += "\n" + name + ": ";
    for (const double value : tensor.to_vector()) text += hex(value);
  };
  for (std::size_t g = 0; g < opt.group_count(); ++g) {
    for (std::size_t i = 0; i < opt.group(g).params.size(); ++i) {
      add("param", opt.group(g).params[i]);
      for (const auto& [name, tensor] : opt.states(opt.group(g).params[i]))
        add(name, tensor);
    }
    for (const auto& [name, number] : opt.group(g).numbers()) {
      text += "\n" + name + ": " + hex(number->value());
    }
    text += "\ninitial: " + hex(opt.group(g).initial_lr.value_or(-1));
  }
  const std::function<void(const SchedulerState&)> add_state =
      [&](const SchedulerState& s) {
        text += "\n" + s.kind;
        for (const auto& [name, values] : s.values) {
          text += "\n" + name + ": ";
          for (const double value : values) text += hex(value);
        }
        for (const SchedulerState& part : s.schedulers) add_state(part);
      };
  add_state(state);
  return text;
}

inline std::string bits_of(const Run& run) {
  return bits_of(*run.opt, run.sched.scheduler().state());
}

/// Calls `f(kind, row, tensors, name)` for every run.
template <class F>
void for_each_run(F f) {
  std::size_t number = 0;
  for (const Kind& kind : kinds()) {
    for (const ScheduleRow& row : lr_testing::rows()) {
      for (const bool tensors : {false, true}) {
        f(kind, row, tensors, "run" + std::to_string(number++));
      }
    }
  }
}

}  // namespace checkpoint_testing
