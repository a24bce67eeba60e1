#include "fusebook/reports/recording_diff.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "fusebook/reports/class_name.h"
#include "fusebook/support/join.h"
#include "fusebook/support/number_text.h"

namespace fuse {
namespace {

using Kind = OptionFact::Kind;

// ---- optimizers -------------------------------------------------------------

std::string path_of(std::size_t group, const OptionFact& option) {
  std::string path = fmt::format("param_groups[{}]", group);
  if (option.name == nullptr) return path;
  path += "[\"" + std::string(option.name) + "\"]";
  if (option.index >= 0) path += fmt::format("[{}]", option.index);
  return path;
}

std::string value_text(const OptionFact& option) {
  if (option.kind == Kind::tensor) return "a tensor";
  if (option.kind == Kind::flag) return option.value != 0 ? "true" : "false";
  return number_text(option.value);
}

// A number changes operations only if it becomes or ceases to be zero or a
// tensor; its value is guarded.
bool changes_operations(const OptionFact& before, const OptionFact& now) {
  if (before.kind != now.kind) return true;
  return before.kind != Kind::tensor && (before.value == 0) != (now.value == 0);
}

std::string group_text(std::size_t group, std::int64_t before,
                       std::int64_t now) {
  const std::string path = path_of(group, {});
  if (before == 0) {
    return fmt::format(
        "{} is now updated: {}{}", path, now,
        now == 1 ? " parameter has a gradient" : " parameters have a gradient");
  }
  return path + " is no longer updated: no parameter has a gradient";
}

// The first difference between two steps of one optimizer class.
std::string diff_steps(const Facts& before, const Facts& now,
                       std::size_t step) {
  const auto groups_before = before.groups(step);
  const auto groups_now = now.groups(step);
  const std::size_t both = std::min(groups_before.size(), groups_now.size());
  for (std::size_t g = 0; g < both; ++g) {
    const auto options_before = before.options(step, g);
    const auto options_now = now.options(step, g);
    const std::size_t count =
        std::min(options_before.size(), options_now.size());
    const bool took_part = groups_before[g].params > 0;
    const bool takes_part = groups_now[g].params > 0;
    for (std::size_t o = 0; took_part && takes_part && o < count; ++o) {
      if (!changes_operations(options_before[o], options_now[o])) continue;
      return path_of(g, options_now[o]) + " was " +
             value_text(options_before[o]) + " and is " +
             value_text(options_now[o]);
    }
    if (took_part != takes_part) {
      return group_text(g, groups_before[g].params, groups_now[g].params);
    }
  }
  if (groups_before.size() < groups_now.size()) {
    return path_of(both, {}) + " is new";
  }
  if (groups_before.size() > groups_now.size()) {
    return path_of(both, {}) + " is gone";
  }
  return "";
}

struct Difference {
  std::string text;
  std::optional<std::size_t> step;  // index in the current recording
};

Difference diff_facts(const Facts& before, const Facts& now) {
  const std::size_t count = std::max(before.steps().size(), now.steps().size());
  for (std::size_t k = 0; k < count; ++k) {
    if (k >= now.steps().size()) {
      return {"a step of " + class_name(*before.steps()[k].optimizer) +
                  " is no longer recorded",
              {}};
    }
    const std::string own = class_name(*now.steps()[k].optimizer);
    if (k >= before.steps().size()) {
      return {"a step of " + own + " is recorded as well", k};
    }
    if (*before.steps()[k].optimizer != *now.steps()[k].optimizer) {
      return {"a step of " + own + " is recorded instead of one of " +
                  class_name(*before.steps()[k].optimizer),
              k};
    }
    std::string text = diff_steps(before, now, k);
    if (!text.empty()) return {std::move(text), k};
  }
  return {};
}

// ---- operations -------------------------------------------------------------

// Excludes conversions, which nobody wrote.
bool is_written(const Node& node) {
  return node.arity > 0 && node.op != OpCode::cast && node.op != OpCode::fill;
}

std::vector<ValueId> operations_of(const Program& program) {
  std::vector<ValueId> all;
  for (std::size_t i = 0; i < program.nodes().size(); ++i) {
    if (is_written(program.nodes()[i])) all.push_back(ValueId(i));
  }
  return all;
}

// The slot that an operand is loaded from, perhaps converted; -1 if it is computed.
std::int32_t slot_of(const Program& program, ValueId id) {
  while (program.node(id).op == OpCode::cast) id = program.node(id).in[0];
  const Node& node = program.node(id);
  return node.op == OpCode::load ? node.in[0] : -1;
}

// Names of the operations that `more` has in addition to those of `less`.
std::string surplus(const Program& less, const Program& more) {
  std::map<OpCode, int> known;
  for (const ValueId id : operations_of(less)) ++known[less.node(id).op];
  std::string text;
  for (const ValueId id : operations_of(more)) {
    const OpCode op = more.node(id).op;
    if (--known[op] >= 0) continue;
    add_item(text, name_of(op));
  }
  return text;
}

std::string surplus_text(const Recorded& before, const Recorded& now) {
  const std::string added = surplus(before.program, now.program);
  const std::string dropped = surplus(now.program, before.program);
  std::string text;
  if (!added.empty()) text += ", which adds " + added;
  if (!dropped.empty()) {
    text += (added.empty() ? ", which drops " : " and drops ") + dropped;
  }
  return text;
}

bool same_operation(const Node& a, const Node& b) {
  return a.op == b.op && a.rate == b.rate && a.dtype == b.dtype;
}

// Returns "mul at a.cpp:9", where the user called it, and adds the place.
std::string operation_text(const Program& program, ValueId id,
                           std::vector<LogPlace>& places) {
  std::string text(name_of(program.node(id).op));
  const std::source_location place = program.call_place(id);
  if (place.line() == 0) return text;
  places.push_back(log_place(place));
  return text + " at " + to_string(places.back());
}

std::string more_text(std::size_t count) {
  if (count == 1) return "";
  return count == 2 ? ", and 1 more" : fmt::format(", and {} more", count - 1);
}

RecordingDiff diff_operations(const Program& before, const Program& now) {
  const std::vector<ValueId> old = operations_of(before);
  const std::vector<ValueId> own = operations_of(now);
  std::size_t k = 0;
  while (k < old.size() && k < own.size() &&
         same_operation(before.node(old[k]), now.node(own[k]))) {
    ++k;
  }
  RecordingDiff diff;
  const std::string number = fmt::format("operation {}", k + 1);
  if (k < old.size() && k < own.size()) {
    diff.text = number + " was " + operation_text(before, old[k], diff.places) +
                " and is " + operation_text(now, own[k], diff.places);
  } else if (k < own.size()) {
    diff.text = number + ", " + operation_text(now, own[k], diff.places) +
                ", is new" + more_text(own.size() - k);
  } else if (k < old.size()) {
    diff.text = number + ", " + operation_text(before, old[k], diff.places) +
                ", is gone" + more_text(old.size() - k);
  } else {
    diff.text = "the same operations have different operands";
  }
  return diff;
}

}  // namespace

std::vector<std::int32_t> slots_before(const Program& before,
                                       const Program& now) {
  const std::vector<ValueId> old = operations_of(before);
  const std::vector<ValueId> own = operations_of(now);
  const auto same_op = [&](ValueId a, ValueId b) {
    return before.node(a).op == now.node(b).op;
  };
  const auto& stored = before.stores();
  if (before.slots().size() != now.slots().size() ||
      stored.size() != now.stores().size() ||
      !std::equal(old.begin(), old.end(), own.begin(), own.end(), same_op)) {
    return {};
  }
  std::vector<std::int32_t> slots(now.slots().size(), -1);
  for (std::size_t i = 0; i < own.size(); ++i) {
    for (std::size_t k = 0; k < now.node(own[i]).arity; ++k) {
      const std::int32_t slot = slot_of(now, now.node(own[i]).in[k]);
      if (slot < 0 || slots[std::size_t(slot)] >= 0) continue;
      slots[std::size_t(slot)] = slot_of(before, before.node(old[i]).in[k]);
    }
  }
  for (std::size_t i = 0; i < stored.size(); ++i) {
    std::int32_t& slot = slots[std::size_t(now.stores()[i].slot)];
    if (slot < 0) slot = stored[i].slot;
  }
  return slots;
}

RecordingDiff diff_recordings(const Recorded& before, const Recorded& now) {
  const Difference fact = diff_facts(before.facts, now.facts);
  if (fact.text.empty()) return diff_operations(before.program, now.program);
  RecordingDiff diff;
  diff.text = fact.text + surplus_text(before, now);
  if (!fact.step) return diff;
  const std::source_location place = now.facts.steps()[*fact.step].place;
  if (place.line() == 0) return diff;
  diff.places.push_back(log_place(place));
  diff.text += " (step() at " + to_string(diff.places.back()) + ")";
  return diff;
}

}  // namespace fuse
