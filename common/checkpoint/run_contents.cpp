#include "fusebook/checkpoint/run_contents.h"

#include <fmt/core.h>

#include "fusebook/checkpoint/numbers_as_text.h"
#include "fusebook/support/error.h"
#include "fusebook/support/number_text.h"

namespace fuse {
namespace {

void put_group(RunContents& out, Optimizer& optimizer, std::size_t g) {
  ParamGroup& group = optimizer.group(g);
  const std::string place = group_place(g);
  for (const auto& [name, number] : group.numbers()) {
    if (number->is_tensor()) {
      out.tensors[place + name] = number->tensor();
    } else {
      out.texts[place + name] = number_text(number->value());
    }
  }
  for (const auto& [name, on] : group.flags()) {
    out.texts[place + name] = on_off(*on);
  }
  if (group.initial_lr) {
    out.texts[place + "initial_lr"] = number_text(*group.initial_lr);
  }
  out.texts[place + "params"] = number_text(group.params.size());
  for (std::size_t i = 0; i < group.param_names.size(); ++i) {
    out.texts[name_place(g, i)] = group.param_names[i];
  }
  for (std::size_t i = 0; i < group.params.size(); ++i) {
    out.tensors[param_place(g, i)] = group.params[i];
    for (const auto& [name, tensor] :
         optimizer.states_in_use(g, group.params[i])) {
      out.tensors[state_place(g, i) + name] = tensor;
    }
  }
}

// The number of schedulers in a list, and the state of each.
void put_schedulers(Metadata& texts, const std::string& place,
                    const std::vector<SchedulerState>& states) {
  texts[place] = number_text(states.size());
  for (std::size_t i = 0; i < states.size(); ++i) {
    const std::string one = fmt::format("{}.{}", place, number_text(i));
    texts[one] = states[i].kind;
    for (const auto& [name, values] : states[i].values) {
      texts[one + "." + name] = list_text(values);
    }
    put_schedulers(texts, one + ".schedulers", states[i].schedulers);
  }
}

}  // namespace

std::string on_off(bool on) { return on ? "true" : "false"; }

std::string group_place(std::size_t group) {
  return fmt::format("param_groups.{}.", number_text(group));
}

std::string param_place(std::size_t group, std::size_t param) {
  return fmt::format("{}params.{}", group_place(group), number_text(param));
}

std::string name_place(std::size_t group, std::size_t param) {
  return fmt::format("{}param_names.{}", group_place(group),
                     number_text(param));
}

std::string state_place(std::size_t group, std::size_t param) {
  return fmt::format("{}state.{}.", group_place(group), number_text(param));
}

void check_scheduler(const Optimizer& optimizer,
                     const SchedulerBase* scheduler) {
  if (scheduler == nullptr) throw Error("checkpoint: a scheduler is null");
  if (&scheduler->optimizer() == &optimizer) return;
  throw Error("checkpoint: " + scheduler->name() +
              " belongs to another optimizer");
}

RunContents contents_of_run(
    Optimizer& optimizer, const std::vector<const SchedulerBase*>& schedulers) {
  for (const SchedulerBase* each : schedulers) {
    check_scheduler(optimizer, each);
  }
  RunContents out;
  out.texts = {{"format", run_format},
               {"optimizer", optimizer.name()},
               {"steps", number_text(optimizer.steps())},
               {"param_groups", number_text(optimizer.group_count())}};
  for (std::size_t g = 0; g < optimizer.group_count(); ++g) {
    put_group(out, optimizer, g);
  }
  std::vector<SchedulerState> states;
  for (const SchedulerBase* scheduler : schedulers) {
    states.push_back(scheduler->state());
  }
  put_schedulers(out.texts, "schedulers", states);
  return out;
}

}  // namespace fuse
