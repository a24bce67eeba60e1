// Measures steps of Adam beside the machine's own limit, what a step costs
// beside its kernel, and how long compiling takes. Each figure is the median of
// several processes; within one, everything is measured in random order. With
// --check 1 it fails when a ratio is not what the book promises.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "bench/cases.h"
#include "bench/compile_times.h"
#include "bench/gradients.h"
#include "bench/groups.h"
#include "bench/host_cost.h"
#include "bench/processes.h"
#include "bench/promises.h"
#include "bench/steps.h"
#include "bench/summary.h"
#include "bench/tails.h"
#include "bench/threads.h"
#include "fusebook/harness/options.h"
#include "fusebook/runtime/parallel.h"
#include "fusebook/support/error.h"
#include "fusebook/support/output_file.h"

namespace fuse::bench {
namespace {

// What one process measures.
struct Part {
  int of_case = 0;  // the number it has on the command line
  std::function<void()> measure;
  const Case* torch = nullptr;  // what PyTorch can do, too
  const char* kind = "step";    // of the readings that it is beside
};

int case_count() { return int(all_cases().size()); }
int groups_case() { return case_count() + 1; }

void measure_host() {
  for (const std::size_t n : {10, 1000, 10000}) measure_host_cost(n);
  measure_threads();
}

void measure_compiling() {
  for (const std::size_t n : {1, 10, 100, 1000, 10000}) {
    measure_compile_times(n);
  }
}

const std::vector<Part>& all_parts() {
  static const std::vector<Part> all = [] {
    std::vector<Part> parts;
    for (const Case& one : all_cases()) {
      const int number = int(&one - all_cases().data()) + 1;
      parts.push_back({number, [&one] { measure_steps(one); }, &one});
      if (one.with_tail) {
        parts.push_back({number, [&one] { measure_tail(one); }, &one, "tail"});
      }
      if (one.with_gradients) {
        parts.push_back({number, [&one] { measure_gradients(one); }});
      }
    }
    parts.push_back({groups_case(), measure_groups});
    parts.push_back({0, measure_host});
    parts.push_back({0, measure_compiling});
    parts.push_back({0, measure_first_step});
    parts.push_back({0, nullptr});  // a program of its own: beside OpenMP
    return parts;
  }();
  return all;
}

std::vector<std::size_t> wanted_parts(std::int64_t of_case) {
  std::vector<std::size_t> parts;
  for (std::size_t part = 0; part < all_parts().size(); ++part) {
    if (of_case != 0 && of_case != all_parts()[part].of_case) continue;
    parts.push_back(part);
  }
  return parts;
}

struct Wanted {
  std::vector<std::size_t> parts;
  std::size_t processes = 5;
  int threads = 1;
  bool torch = false;
};

// PyTorch runs in a process of its own, so that its steps and the limit were not
// measured in turns.
void add_torch(std::vector<Reading>& readings, const Part& part, int threads) {
  const std::string kind = part.kind;
  const auto limit =
      std::find_if(readings.begin(), readings.end(),
                   [](const Reading& r) { return r.variant == limit_name; });
  const double limit_us = limit == readings.end() ? 0 : limit->us;
  for (Reading reading : measure_torch(kind, *part.torch, threads)) {
    if (reading.kind == kind) {
      reading.divisor = "limit of our own process";
      reading.divisor_us = limit_us;
    }
    readings.push_back(reading);
  }
  std::stable_partition(readings.begin(), readings.end(),
                        [&](const Reading& r) { return r.kind == kind; });
}

std::vector<Reading> measure_part(const Wanted& wanted, std::size_t number) {
  const Part& part = all_parts()[number];
  if (part.measure == nullptr) return measure_beside_openmp(wanted.threads);
  auto readings = measure_in_process(int(number) + 1, wanted.threads);
  // The first process has to fill the cache that it wanted to measure.
  if (readings.empty()) {
    readings = measure_in_process(int(number) + 1, wanted.threads);
  }
  if (wanted.torch && part.torch != nullptr) {
    add_torch(readings, part, wanted.threads);
  }
  return readings;
}

std::vector<Row> measure_once(const Wanted& wanted, std::size_t part) {
  std::vector<std::vector<Reading>> processes(wanted.processes);
  for (auto& readings : processes) readings = measure_part(wanted, part);
  std::vector<Row> rows = summarise(processes);
  print_rows(rows);
  return rows;
}

// Part after part, so that a table appears as soon as it is complete. Other
// programs disturb a measurement; a promise counts as broken when it is broken
// every time, and what a promise compares is measured in one part.
std::vector<Row> measure_all(const Wanted& wanted, const Options& options,
                             bool* kept) {
  std::printf(
      "limit: the fastest of plain loops that load and store what a step "
      "does\n");
  std::vector<Row> all;
  for (const std::size_t part : wanted.parts) {
    std::vector<Row> rows;
    bool good = false;
    for (std::int64_t i = 0; i < options["attempts"] && !good; ++i) {
      rows = measure_once(wanted, part);
      good = check_promises(rows, double(options["slack"]) / 100);
    }
    *kept = *kept && good;
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

int run(int argc, const char* const* argv) {
  const auto parts = std::int64_t(all_parts().size()) - 1;
  const OptionSet own(
      {{"case", 0, 0, groups_case(),
        "measure this case only; " + std::to_string(groups_case()) +
            ": many groups; 0: everything"},
       {"processes", 5, 1, 99, "number of processes to take medians over"},
       {"check", 0, 0, 1, "1: fail if a promise is broken"},
       {"attempts", 1, 1, 10, "attempts to measure if a promise is broken"},
       {"slack", 0, 0, 100, "percent by which a promise may be missed"},
       {"measure", 0, 0, parts, "for bench itself: one part, as raw readings"}},
      {{"peer", "none", {"none", "torch"}, "the same cases beside ours"}});
  const Options options = parse_options(argc, argv, own);
  if (options.help_wanted()) {
    std::printf("%s", usage_text("bench", own).c_str());
    return 0;
  }
  if (options.threads() > 0) set_thread_count(options.threads());
  if (options["measure"] > 0) {
    all_parts()[std::size_t(options["measure"]) - 1].measure();
    return 0;
  }
  const Wanted wanted = {wanted_parts(options["case"]),
                         std::size_t(options["processes"]), thread_count(),
                         options.choice("peer") == "torch"};
  bool kept = true;
  const std::vector<Row> rows = measure_all(wanted, options, &kept);
  if (!options.json_file().empty()) {
    OutputFile file("--json", options.json_file());
    file.write(json_of(rows, wanted.processes));
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
