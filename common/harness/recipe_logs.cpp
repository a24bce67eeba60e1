#include "fusebook/harness/recipe_logs.h"

#include <cstdio>
#include <vector>

#include "fusebook/harness/recipe.h"
#include "fusebook/harness/recipe_run.h"

namespace fuse {

ShownLogs::~ShownLogs() {
  if (was_on_.empty()) return;
  set_log_sink({});
  for (const auto& [channel, was_on] : was_on_) set_logs(channel, was_on);
}

void ShownLogs::show(Log channel) {
  was_on_.try_emplace(channel, log_enabled(channel));
  set_logs(channel);
  set_log_sink([this](const LogMessage& message) { receive(message); });
}

void ShownLogs::receive(const LogMessage& message) {
  if (!was_on_.contains(message.channel)) {
    std::fputs(message.text.c_str(), stderr);
    return;
  }
  std::vector<Printable> places;
  for (const LogPlace& each : message.places) places.push_back(typed(each));
  print_block(message.text, places);
}

// One place keeps one name, however often it is mentioned.
const Printable& ShownLogs::typed(const LogPlace& location) {
  const std::string key = to_string(location);
  const auto known = places_.find(key);
  if (known != places_.end()) return known->second;
  return places_.emplace(key, place(location.file, location.line))
      .first->second;
}

void show_logs(Log channel) {
  if (current_run() == nullptr) {
    throw Error("show_logs works only inside run_recipe");
  }
  current_run()->logs.show(channel);
}

}  // namespace fuse
