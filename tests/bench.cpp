// Measures steps of Adam in one process and prints ratios to the machine's own
// limit. With --check 1 it fails when a ratio is not what the book promises.

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "bench/compile_times.h"
#include "bench/steps.h"
#include "error.h"
#include "json.h"
#include "options.h"
#include "output_file.h"
#include "parallel.h"
#include "provenance.h"

namespace fuse::bench {
namespace {

bool holds(const std::string& what, double value, double low, double high) {
  const bool good = low <= value && value <= high;
  std::printf("  %-4s %s: %.3g, from %.3g to %.3g\n", good ? "ok" : "FAIL",
              what.c_str(), value, low, high);
  return good;
}

const Row& find(const std::vector<Row>& rows, const std::string& variant) {
  for (const Row& row : rows) {
    if (row.variant == variant) return row;
  }
  throw Error("the benchmark has no variant " + variant);
}

std::string json_of(const Row& row) {
  return JsonObject()
      .add("case", json_string(row.of_case))
      .add("variant", json_string(row.variant))
      .add("us", json_number(row.us))
      .add("ratio_to_limit", json_number(row.ratio_to_limit))
      .add("gb_per_s", json_number(row.gb_per_s))
      .line();
}

std::vector<Row> run_case(const Case& wanted) {
  const std::vector<Row> rows = measure_steps(wanted);
  std::printf("%s\n", wanted.name.c_str());
  for (const Row& row : rows) {
    std::printf("  %-12s %12.1f us %8.3f x limit %8.1f GB/s\n",
                row.variant.c_str(), row.us, row.ratio_to_limit, row.gb_per_s);
  }
  std::fflush(stdout);
  return rows;
}

bool check_large(const std::vector<Row>& rows) {
  const double compiled = find(rows, "compiled").ratio_to_limit;
  const double eager = find(rows, "foreach").ratio_to_limit;
  const bool fast = holds("compiled to limit", compiled, 0, 1.15);
  return holds("eager to limit", eager, 2, 4) && fast;
}

bool run_compile_times() {
  const CompileTimes times = measure_compile_times();
  std::printf(
      "compile, cold\n  empty %.1f ms, Adam over 10 tensors %.1f ms, over "
      "10,000 %.1f ms\n",
      times.empty * 1e3, times.few_tensors * 1e3, times.many_tensors * 1e3);
  return holds("seconds beyond an empty compile",
               times.few_tensors - times.empty, 0, 0.1);
}

// Other programs disturb a measurement; a promise counts as broken when it is
// broken every time.
template <class Measure>
bool any_of(std::int64_t attempts, Measure measure) {
  for (std::int64_t i = 0; i < attempts; ++i) {
    if (measure()) return true;
  }
  return false;
}

std::string json_of(const std::vector<std::string>& rows) {
  const Provenance here = current_provenance();
  return JsonObject()
             .add("device", json_string(here.device))
             .add("threads", std::to_string(here.threads))
             .add("compiler", json_string(here.compiler))
             .add("rows", json_array_block(rows, 2))
             .block(0) +
         "\n";
}

std::vector<std::string> run_cases(const Options& options, bool* kept) {
  std::vector<std::string> json;
  auto cases = all_cases();
  cases.resize(std::size_t(options["cases"]));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::vector<Row> rows;
    const bool good = any_of(options["attempts"], [&] {
      rows = run_case(cases[i]);
      return i > 0 || check_large(rows);
    });
    *kept = *kept && good;
    for (const Row& row : rows) json.push_back(json_of(row));
  }
  return json;
}

int run(int argc, const char* const* argv) {
  const std::vector<NumberOption> numbers = {
      {"check", 0, 0, 1, "1: fail when a promise is broken"},
      {"attempts", 1, 1, 10, "measure again when a promise is broken"},
      {"cases", 4, 1, 4, "how many of the cases to run"}};
  const Options options = parse_options(argc, argv, numbers);
  if (options.help_wanted()) {
    std::fputs(usage_text("bench", numbers).c_str(), stdout);
    return 0;
  }
  if (options.threads() > 0) set_thread_count(options.threads());
  bool kept = true;
  const std::vector<std::string> json = run_cases(options, &kept);
  kept = any_of(options["attempts"], run_compile_times) && kept;
  if (!options.json_file().empty()) {
    OutputFile file("--json", options.json_file());
    file.write(json_of(json));
    file.commit();
  }
  return kept || options["check"] == 0 ? 0 : 1;
}

}  // namespace
}  // namespace fuse::bench

int main(int argc, char** argv) {
  try {
    return fuse::bench::run(argc, argv);
  } catch (const fuse::UsageError& error) {
    std::fprintf(stderr, "bench: error: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench: error: %s\n", error.what());
    return 1;
  }
}
