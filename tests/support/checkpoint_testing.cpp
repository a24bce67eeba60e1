#include "support/checkpoint_testing.h"

#include <cstdio>

#include "fusebook/optim/all.h"
#include "support/lion.h"
#include "support/optimizer_rules.h"

namespace checkpoint_testing {
namespace {

/// What schedulers cycle, or null.
Scalar* momentum_of(ParamGroup& group) {
  Scalar* const beta1 = group.find("betas[0]");
  return beta1 != nullptr ? beta1 : group.find("momentum");
}

void make_tensor(Scalar& number, DType dtype = DType::float32) {
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

std::string hex(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%a ", value);
  return text;
}

}  // namespace

const std::vector<Kind>& kinds() {
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

std::string bits_of(Optimizer& opt, const SchedulerState& state) {
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

std::string bits_of(const Run& run) {
  return bits_of(*run.opt, run.sched.scheduler().state());
}

}  // namespace checkpoint_testing
