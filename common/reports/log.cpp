#include "fusebook/reports/log.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <sstream>

#include "fusebook/support/error.h"
#include "fusebook/support/source_place.h"

namespace fuse {
namespace {

constexpr std::array names = {"recompiles", "output_code", "graph"};

struct State {
  std::mutex mutex;
  std::array<std::atomic<bool>, names.size()> on{};
  std::function<void(const LogMessage&)> sink;
};

void switch_on(State& state, const std::string& word) {
  bool known = word == "all" || word.empty();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (word != "all" && word != names[i]) continue;
    state.on[i] = true;
    known = true;
  }
  if (known) return;
  throw UsageError("FUSEBOOK_LOGS: unknown channel \"" + word +
                   "\"; use recompiles, output_code, graph or all, "
                   "comma-separated");
}

State& state() {
  static State instance;
  static const bool ready = [] {
    const char* wanted = std::getenv("FUSEBOOK_LOGS");
    std::istringstream words(wanted != nullptr ? wanted : "");
    for (std::string word; std::getline(words, word, ',');) {
      switch_on(instance, word);
    }
    return true;
  }();
  static_cast<void>(ready);
  return instance;
}

}  // namespace

std::string to_string(const LogPlace& place) {
  return at(place.file, place.line);
}

LogPlace log_place(const std::source_location& place) {
  return {short_path(place.file_name()), place.line()};
}

void set_logs(Log channel, bool on) {
  State& log = state();
  const std::scoped_lock lock(log.mutex);
  log.on[std::size_t(channel)] = on;
}

bool log_enabled(Log channel) { return state().on[std::size_t(channel)]; }

void write_log(Log channel, const std::string& message,
               std::vector<LogPlace> places) {
  State& log = state();
  const std::scoped_lock lock(log.mutex);
  if (!log.on[std::size_t(channel)]) return;
  std::string text =
      std::string("[") + names[std::size_t(channel)] + "] " + message + "\n";
  if (log.sink) {
    log.sink({channel, std::move(text), std::move(places)});
  } else {
    std::fputs(text.c_str(), stderr);
  }
}

void set_log_sink(std::function<void(const LogMessage&)> sink) {
  State& log = state();
  const std::scoped_lock lock(log.mutex);
  log.sink = std::move(sink);
}

}  // namespace fuse
