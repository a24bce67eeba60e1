#include "fusebook/reports/log.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "fusebook/jit/process.h"
#include "fusebook/support/error.h"
#include "support/jit_testing.h"
#include "support/testing.h"

using namespace fuse;

namespace {

// Runs one of the hidden cases below in a new process, so that it meets the
// environment as a program does at its start.
ProcessResult run_case(const std::string& name, const std::string& logs) {
  return run_process({"/proc/self/exe", "--no-skip", "--test-case=" + name,
                      "--minimal", "--no-intro"},
                     {"FUSEBOOK_LOGS=" + logs});
}

std::string channels() {
  std::string on;
  if (log_enabled(Log::recompiles)) on += "recompiles ";
  if (log_enabled(Log::output_code)) on += "output_code ";
  if (log_enabled(Log::graph)) on += "graph ";
  return on;
}

std::string channels_for(const std::string& logs) {
  const std::string text = run_case("hidden: channels", logs).output;
  const std::size_t begin = text.find("on: ");
  REQUIRE(begin != std::string::npos);
  return text.substr(begin + 4, text.find('\n', begin) - begin - 4);
}

}  // namespace

TEST_CASE("hidden: channels" * doctest::skip()) {
  std::printf("on: %s\n", channels().c_str());
}

TEST_CASE("hidden: error" * doctest::skip()) {
  for (int i = 0; i < 2; ++i) {
    const std::string first = testing::message_of<UsageError>(channels);
    const std::string second =
        testing::message_of<UsageError>([] { set_logs(Log::graph); });
    std::printf("error: %s\n", first.c_str());
    CHECK(first == second);
  }
}

TEST_CASE("the environment says which channels start switched on") {
  CHECK(channels_for("").empty());
  CHECK(channels_for("recompiles") == "recompiles ");
  CHECK(channels_for("output_code") == "output_code ");
  CHECK(channels_for("graph") == "graph ");
  CHECK(channels_for("graph,recompiles") == "recompiles graph ");
  CHECK(channels_for("all") == "recompiles output_code graph ");
}

TEST_CASE("an unknown channel in the environment is an error, every time") {
  for (const std::string logs :
       {"recompile", "graph,Recompiles", "graph all"}) {
    const ProcessResult result = run_case("hidden: error", logs);
    CHECK(result.exit_code == 0);
    const std::string word = logs.substr(logs.find(',') + 1);
    CHECK(jit_testing::count_of(
              result.output, "error: FUSEBOOK_LOGS: unknown channel \"" + word +
                                 "\"; use recompiles, output_code, graph or "
                                 "all, comma-separated\n") == 2);
  }
}

TEST_CASE("a channel that is off says nothing") {
  std::string text;
  set_log_sink([&](const LogMessage& message) { text += message.text; });
  write_log(Log::graph, "one");
  CHECK(text.empty());
  set_logs(Log::graph);
  CHECK(log_enabled(Log::graph));
  write_log(Log::recompiles, "two");
  CHECK(text.empty());
  write_log(Log::graph, "three\nfour");
  CHECK(text == "[graph] three\nfour\n");
  set_logs(Log::graph, false);
  CHECK_FALSE(log_enabled(Log::graph));
  write_log(Log::graph, "five");
  CHECK(text == "[graph] three\nfour\n");
  set_log_sink({});
}

TEST_CASE("each channel names itself") {
  std::string text;
  set_log_sink([&](const LogMessage& message) { text += message.text; });
  for (const Log channel : {Log::recompiles, Log::output_code, Log::graph}) {
    set_logs(channel);
    write_log(channel, "x");
    set_logs(channel, false);
  }
  set_log_sink({});
  CHECK(text == "[recompiles] x\n[output_code] x\n[graph] x\n");
}

TEST_CASE("without a sink messages go to standard error") {
  set_logs(Log::graph);
  jit_testing::CapturedStderr captured;
  write_log(Log::graph, "hello");
  std::string seen;
  set_log_sink([&](const LogMessage& message) { seen += message.text; });
  write_log(Log::graph, "elsewhere");
  set_log_sink({});
  write_log(Log::graph, "back");
  CHECK(captured.stop() == "[graph] hello\n[graph] back\n");
  CHECK(seen == "[graph] elsewhere\n");
  set_logs(Log::graph, false);
}
