#include "fusebook/harness/transcript.h"

#include <algorithm>
#include <array>

#include "fusebook/json/json.h"
#include "fusebook/support/error.h"

namespace fuse {
namespace {

bool is_name(const std::string& name) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz";
  constexpr std::string_view all = "abcdefghijklmnopqrstuvwxyz0123456789_";
  return !name.empty() && letters.find(name[0]) != std::string_view::npos &&
         name.find_first_not_of(all) == std::string::npos;
}

Json value_json(const RecordedValue& value) {
  using Kind = RecordedValue::Kind;
  if (value.kind == Kind::place || value.kind == Kind::text) {
    return {{"kind", value.kind == Kind::place ? "place" : "text"},
            {"value", value.text},
            {"shown", value.shown}};
  }
  Json json = {{"value", json_number(value.number)}, {"unit", value.unit}};
  switch (value.kind) {
    case Kind::ratio:
      json["kind"] = "ratio";
      json["low"] = json_number(value.low);
      json["above"] = value.above;
      json["below"] = value.below;
      break;
    case Kind::varying:
      json["kind"] = "varying";
      json["low"] = json_number(value.low);
      json["high"] = json_number(value.high);
      break;
    default:
      json["kind"] = "measured";
  }
  json["shown"] = value.shown;
  return json;
}

Json result_json(const ResultValue& value) {
  if (const auto* number = std::get_if<double>(&value)) {
    return json_number(*number);
  }
  return std::visit([](const auto& v) { return Json(v); }, value);
}

Json options_json(const Options& options) {
  Json json = Json::object();
  for (const NumberOption& number : options.own().numbers) {
    json[number.name] = number.value;
  }
  for (const ChoiceOption& choice : options.own().choices) {
    json[choice.name] = choice.value;
  }
  return json;
}

Json provenance_json(const Provenance& provenance) {
  Json json = {{"device", provenance.device}};
  if (!provenance.architecture.empty()) {
    json["architecture"] = provenance.architecture;
  }
  json["threads"] = provenance.threads;
  json["compiler"] = provenance.compiler;
  json["system"] = provenance.system;
  json["date"] = provenance.date;
  return json;
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

void Record::add_result(const std::string& name, ResultValue value) {
  results_.emplace_back(name, std::move(value));
}

std::string Record::results_json(const std::string& recipe,
                                 const Options& options, const Device& device,
                                 int threads) const {
  Json json = {{"recipe", recipe},
               {"device", to_string(device)},
               {"threads", threads},
               {"options", options_json(options)}};
  for (const auto& [name, value] : results_) json[name] = result_json(value);
  return json_text(json);
}

std::string Record::record_json(const std::string& recipe,
                                const Options& options, const Device& device,
                                const Provenance& provenance) const {
  Json steps = Json::array();
  for (const Step& step : steps_) {
    // What precedes the first step is a step without a title, if anything.
    if (step.title.empty() && step.text.empty()) continue;
    steps.push_back({{"title", step.title}, {"text", step.text}});
  }
  // C++ makes the arguments of one call in any order; names have one order.
  std::vector<RecordedValue> sorted = values_;
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  Json values = Json::object();
  for (const RecordedValue& value : sorted) {
    values[value.name] = value_json(value);
  }
  return json_text({{"format", 1},
                    {"recipe", recipe},
                    {"device", to_string(device)},
                    {"options", options_json(options)},
                    {"provenance", provenance_json(provenance)},
                    {"steps", steps},
                    {"kernels", kernels_},
                    {"values", values}});
}

}  // namespace fuse
