#include "fusebook/checkpoint/checkpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "fusebook/checkpoint/numbers_as_text.h"
#include "fusebook/checkpoint/run_contents.h"
#include "fusebook/support/error.h"
#include "fusebook/support/number_text.h"
#include "fusebook/tensor/tensor_layout.h"
#include "fusebook/trace/recorder.h"

namespace fuse {
namespace {

constexpr const char* kTensors = "fusebook tensors 1";

std::string kind_of(const Tensor& tensor) {
  return "shape " + to_string(tensor.shape()) + " and " +
         name_of(tensor.dtype());
}

// Consumes a file: everything in it must be requested, and must fit. Only then
// are any effects applied.
class Loading {
 public:
  explicit Loading(TensorFile file) : file_(std::move(file)) {}

  std::optional<std::string> find_text(const std::string& name) {
    const auto found = file_.metadata.extract(name);
    if (found.empty()) return {};
    return found.mapped();
  }
  std::string text(const std::string& name) {
    if (auto found = find_text(name)) return *found;
    if (file_.tensors.contains(name)) {
      throw Error(quoted(name) + " is a tensor in the file, but a number here");
    }
    throw Error(quoted(name) + " is missing from the file");
  }
  /// A text that must be the same here.
  void same_text(const std::string& name, const std::string& here) {
    compare(name, text(name), here);
  }
  /// The same for a switch that is in a file only while it is on.
  /// One that the file lacks was off, or if it need not be there, is as it is here.
  void same_switch(const std::string& name, bool here, bool needed) {
    compare(name, find_text(name).value_or(on_off(here && !needed)),
            on_off(here));
  }
  static void compare(const std::string& name, const std::string& there,
                      const std::string& here) {
    if (there == here) return;
    throw Error(quoted(name) + " is " + there + " in the file, but " + here +
                " here");
  }
  /// A tensor that replaces the contents of the one here.
  void tensor(const std::string& name, const Tensor& here) {
    if (!here.defined()) throw Error(quoted(name) + " is undefined here");
    const auto found = file_.tensors.extract(name);
    if (found.empty()) {
      throw Error(file_.metadata.contains(name)
                      ? quoted(name) +
                            " is a number in the file, but a tensor here"
                      : quoted(name) + " is missing from the file");
    }
    const Tensor& there = found.mapped();
    if (there.shape() != here.shape() || there.dtype() != here.dtype()) {
      throw Error(quoted(name) + " has " + kind_of(there) +
                  " in the file, but " + kind_of(here) + " here");
    }
    check_storable(*here.impl(), quoted(name).c_str());
    later([there, target = here]() mutable { target.copy_(there); });
  }
  /// All tensors whose name starts with `place`, with that prefix removed.
  ParamStates tensors_at(const std::string& place) {
    ParamStates found;
    auto next = file_.tensors.lower_bound(place);
    while (next != file_.tensors.end() && next->first.starts_with(place)) {
      found[next->first.substr(place.size())] = next->second;
      next = file_.tensors.erase(next);
    }
    return found;
  }

  void later(std::function<void()> action) {
    actions_.push_back(std::move(action));
  }
  void finish() {
    if (!file_.metadata.empty()) refuse(file_.metadata.begin()->first);
    if (!file_.tensors.empty()) refuse(file_.tensors.begin()->first);
    for (const auto& action : actions_) action();
  }

 private:
  [[noreturn]] static void refuse(const std::string& name) {
    throw Error("it contains " + quoted(name) + ", which does not exist here");
  }

  TensorFile file_;
  std::vector<std::function<void()>> actions_;
};

void load_number(Loading& in, const std::string& place, Scalar& here,
                 bool scheduled) {
  if (here.is_tensor()) {
    in.tensor(place, here.tensor());
    return;
  }
  const double value = parse_number(place, in.text(place));
  in.later([&here, value, scheduled] {
    const bool moved = std::bit_cast<std::uint64_t>(value) !=
                       std::bit_cast<std::uint64_t>(here.value());
    here.assign(value);
    if (moved || scheduled) here.set_moves();
  });
}

void load_initial_lr(Loading& in, const std::string& name, ParamGroup& group) {
  std::optional<double> value;
  if (const auto text = in.find_text(name)) value = parse_number(name, *text);
  in.later([&group, value] { group.initial_lr = value; });
}

// The index here of each parameter in the file, one list per group.
using Places = std::vector<std::vector<std::size_t>>;

Places take_places(Loading& in, const Optimizer& optimizer,
                   const LoadOptions& options) {
  std::vector<const ParamGroup*> groups;
  std::vector<std::vector<std::string>> names;
  for (std::size_t g = 0; g < optimizer.group_count(); ++g) {
    groups.push_back(&optimizer.group(g));
    const std::size_t count = groups.back()->params.size();
    in.same_text(group_place(g) + "params", number_text(count));
    names.emplace_back();
    for (std::size_t i = 0; i < count; ++i) {
      auto name = in.find_text(name_place(g, i));
      if (name) names.back().push_back(std::move(*name));
    }
  }
  return places_by_name(groups, names, "in the file", options);
}

void load_states(Loading& in, Optimizer& optimizer, std::size_t g,
                 const std::vector<std::size_t>& places) {
  std::vector<Tensor> params;
  std::vector<ParamStates> states;
  for (std::size_t i = 0; i < places.size(); ++i) {
    params.push_back(optimizer.group(g).params[places[i]]);
    states.push_back(in.tensors_at(state_place(g, i)));
    optimizer.check_states(state_place(g, i), g, params[i], states.back());
  }
  optimizer.prepare_states(params, states);
  in.later([&optimizer, params, states = std::move(states)] {
    for (std::size_t i = 0; i < params.size(); ++i) {
      optimizer.restore_states(params[i], states[i]);
    }
  });
}

void load_group(Loading& in, Optimizer& optimizer, std::size_t g,
                const std::vector<std::size_t>& places, bool scheduled) {
  ParamGroup& group = optimizer.group(g);
  const std::string place = group_place(g);
  const auto storage = GroupStorage::saved_switches();
  for (const GroupStorage::Switch& each : storage) {
    in.same_switch(place + each.name, group.*each.on, each.has_states);
  }
  for (const auto& [name, on] : group.flags()) {
    const bool known = std::ranges::any_of(
        storage, [&](const auto& each) { return &(group.*each.on) == on; });
    if (!known) in.same_text(place + name, on_off(*on));
  }
  for (const auto& [name, number] : group.numbers()) {
    load_number(in, place + name, *number, scheduled);
  }
  load_initial_lr(in, place + "initial_lr", group);
  for (std::size_t i = 0; i < places.size(); ++i) {
    in.tensor(param_place(g, i), group.params[places[i]]);
  }
  load_states(in, optimizer, g, places);
}

SchedulerState take_state(Loading& in, const std::string& place,
                          const SchedulerState& here) {
  SchedulerState state;
  in.same_text(place, here.kind);
  state.kind = here.kind;
  for (const auto& [name, values] : here.values) {
    const std::string key = place + "." + name;
    state.values[name] = parse_list(key, in.text(key));
  }
  const std::string parts = place + ".schedulers";
  in.same_text(parts, number_text(here.schedulers.size()));
  for (std::size_t i = 0; i < here.schedulers.size(); ++i) {
    state.schedulers.push_back(take_state(
        in, fmt::format("{}.{}", parts, number_text(i)), here.schedulers[i]));
  }
  return state;
}

void load_scheduler(Loading& in, const std::string& place,
                    SchedulerBase& scheduler) {
  SchedulerState state = take_state(in, place, scheduler.state());
  scheduler.check_state(state);
  in.later(
      [&scheduler, state = std::move(state)] { scheduler.load_state(state); });
}

void load_run(Loading& in, Optimizer& optimizer,
              const std::vector<SchedulerBase*>& schedulers,
              const LoadOptions& options) {
  in.same_text("optimizer", optimizer.name());
  in.same_text("param_groups", number_text(optimizer.group_count()));
  in.same_text("schedulers", number_text(schedulers.size()));
  for (std::size_t i = 0; i < schedulers.size(); ++i) {
    load_scheduler(in, fmt::format("schedulers.{}", number_text(i)),
                   *schedulers[i]);
  }
  const Places places = take_places(in, optimizer, options);
  for (std::size_t g = 0; g < optimizer.group_count(); ++g) {
    load_group(in, optimizer, g, places[g], !schedulers.empty());
  }
  const std::int64_t steps = parse_count("steps", in.text("steps"));
  in.later([&optimizer, steps] { optimizer.restore_steps(steps); });
}

// A recorded step has not run yet, so its results cannot be replaced.
void check_not_recording() {
  if (Recorder::current() == nullptr) return;
  throw Error(
      "a checkpoint cannot be loaded inside a compiled function; load it "
      "between two steps");
}

template <class F>
void load(const std::string& path, const std::string& format, F take) {
  check_not_recording();
  Loading in(read_safetensors(path));
  try {
    in.same_text("format", format);
    take(in);
    in.finish();
  } catch (const Error& error) {
    throw Error("cannot load '" + path + "': " + error.what());
  }
}

}  // namespace

void save_checkpoint(const std::string& path, Optimizer& optimizer,
                     const std::vector<const SchedulerBase*>& schedulers) {
  const RunContents run = contents_of_run(optimizer, schedulers);
  write_safetensors(path, run.texts, run.tensors);
}

void load_checkpoint(const std::string& path, Optimizer& optimizer,
                     const std::vector<SchedulerBase*>& schedulers,
                     const LoadOptions& options) {
  for (const SchedulerBase* each : schedulers) {
    check_scheduler(optimizer, each);
  }
  load(path, run_format,
       [&](Loading& in) { load_run(in, optimizer, schedulers, options); });
}

void save_tensors(const std::string& path, const TensorMap& tensors) {
  write_safetensors(path, {{"format", kTensors}}, tensors);
}

void load_tensors(const std::string& path, const TensorMap& tensors) {
  load(path, kTensors, [&](Loading& in) {
    for (const auto& [name, tensor] : tensors) in.tensor(name, tensor);
  });
}

}  // namespace fuse
