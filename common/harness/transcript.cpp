#include "fusebook/harness/transcript.h"

#include <algorithm>
#include <array>

#include "fusebook/support/error.h"
#include "fusebook/support/json.h"
#include "fusebook/support/number_text.h"

namespace fuse {
namespace {

bool is_name(const std::string& name) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz";
  constexpr std::string_view all = "abcdefghijklmnopqrstuvwxyz0123456789_";
  return !name.empty() && letters.find(name[0]) != std::string_view::npos &&
         name.find_first_not_of(all) == std::string::npos;
}

std::string value_json(const RecordedValue& value) {
  using Kind = RecordedValue::Kind;
  JsonObject object;
  if (value.kind == Kind::place || value.kind == Kind::text) {
    object.add("kind", value.kind == Kind::place ? "\"place\"" : "\"text\"");
    return object.add("value", json_string(value.text))
        .add("shown", json_string(value.shown))
        .line();
  }
  object.add("value", json_number(value.number))
      .add("unit", json_string(value.unit));
  switch (value.kind) {
    case Kind::ratio:
      object.add("kind", "\"ratio\"")
          .add("low", json_number(value.low))
          .add("above", json_string(value.above))
          .add("below", json_string(value.below));
      break;
    case Kind::varying:
      object.add("kind", "\"varying\"")
          .add("low", json_number(value.low))
          .add("high", json_number(value.high));
      break;
    default:
      object.add("kind", "\"measured\"");
  }
  return object.add("shown", json_string(value.shown)).line();
}

std::string step_json(const Record::Step& step) {
  return JsonObject()
      .add("title", json_string(step.title))
      .add("text", json_string(step.text))
      .line();
}

std::string options_json(const Options& options) {
  JsonObject object;
  for (const NumberOption& number : options.own().numbers) {
    object.add(number.name, number_text(number.value));
  }
  for (const ChoiceOption& choice : options.own().choices) {
    object.add(choice.name, json_string(choice.value));
  }
  return object.line();
}

std::string provenance_json(const Provenance& provenance) {
  JsonObject object;
  object.add("device", json_string(provenance.device));
  if (!provenance.architecture.empty()) {
    object.add("architecture", json_string(provenance.architecture));
  }
  return object.add("threads", number_text(provenance.threads))
      .add("compiler", json_string(provenance.compiler))
      .add("system", json_string(provenance.system))
      .add("date", json_string(provenance.date))
      .block(2);
}

}  // namespace

void Record::start_step(const std::string& title) {
  if (title.empty()) throw Error("a step needs a title");
  for (const Step& step : steps_) {
    if (step.title == title) {
      throw Error("the step title '" + title + "' is used twice");
    }
  }
  steps_.push_back({title, ""});
}

void Record::add_text(std::string_view text) {
  std::string& recorded = steps_.back().text;
  for (const char character : text) {
    if (character == '{' && recorded.ends_with('@')) recorded += '@';
    recorded += character;
  }
}

void Record::add_placeholder(const std::string& name) {
  std::string& recorded = steps_.back().text;
  if (recorded.ends_with('@')) {
    throw Error("the text before the value '" + name + "' must not end in '@'");
  }
  recorded.append("@{").append(name).append("}");
}

void Record::add_name(const std::string& name) {
  if (!is_name(name)) {
    throw Error("a value cannot be named '" + name +
                "'; use small letters, digits and underscores");
  }
  static constexpr std::array reserved{"recipe", "device", "threads",
                                       "options"};
  if (std::find(reserved.begin(), reserved.end(), name) != reserved.end()) {
    throw Error("the value name '" + name + "' is reserved for the run itself");
  }
  if (std::find(names_.begin(), names_.end(), name) != names_.end()) {
    throw Error("the value name '" + name + "' is used twice");
  }
  names_.push_back(name);
}

void Record::add_value(RecordedValue value) {
  values_.push_back(std::move(value));
}

const RecordedValue* Record::find(const std::string& name) const {
  const auto found = std::find_if(
      values_.begin(), values_.end(),
      [&](const RecordedValue& value) { return value.name == name; });
  return found == values_.end() ? nullptr : &*found;
}

void Record::set_shown(const std::string& name, const std::string& shown) {
  for (RecordedValue& value : values_) {
    if (value.name == name) value.shown = shown;
  }
}

void Record::add_result(const std::string& name, std::string json) {
  results_.emplace_back(name, std::move(json));
}

std::string Record::results_json(const std::string& recipe,
                                 const Options& options, const Device& device,
                                 int threads) const {
  JsonObject object;
  object.add("recipe", json_string(recipe))
      .add("device", json_string(to_string(device)))
      .add("threads", number_text(threads))
      .add("options", options_json(options));
  for (const auto& [name, json] : results_) object.add(name, json);
  return object.block(0) + "\n";
}

std::string Record::record_json(const std::string& recipe,
                                const Options& options, const Device& device,
                                const Provenance& provenance) const {
  std::vector<std::string> steps;
  for (const Step& step : steps_) {
    // What precedes the first step is a step without a title, if anything.
    if (step.title.empty() && step.text.empty()) continue;
    steps.push_back(step_json(step));
  }
  // C++ makes the arguments of one call in any order; names have one order.
  std::vector<RecordedValue> sorted = values_;
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  std::vector<std::string> kernels;
  for (const std::string& hash : kernels_) kernels.push_back(json_string(hash));
  JsonObject values;
  for (const RecordedValue& value : sorted) {
    values.add(value.name, value_json(value));
  }
  return JsonObject()
             .add("format", "1")
             .add("recipe", json_string(recipe))
             .add("device", json_string(to_string(device)))
             .add("options", options_json(options))
             .add("provenance", provenance_json(provenance))
             .add("steps", json_array_block(steps, 2))
             .add("kernels", json_array_block(kernels, 2))
             .add("values", values.block(2))
             .block(0) +
         "\n";
}

}  // namespace fuse
