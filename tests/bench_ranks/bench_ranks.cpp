// Measures what messages between ranks cost, and steps that they share, on one
// rank, on all of a run, and on powers of two between; counts what they send, which
// has to be what was planned; and says what all this means for more ranks. mpirun
// starts it; ./fusebook bench --ranks does.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench_ranks/link_times.h"
#include "bench_ranks/report.h"
#include "fusebook/harness/options.h"
#include "fusebook/support/error.h"
#include "fusebook/support/output_file.h"

namespace fuse::bench {
namespace {

// Some of the ranks, while the others sleep: a rank that waits in MPI keeps a core
// busy.
class Some {
 public:
  explicit Some(int count) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank < count ? 0 : MPI_UNDEFINED, rank,
                   &communicator_);
    if (is_among()) ranks_.emplace(communicator_);
  }
  Some(const Some&) = delete;
  Some& operator=(const Some&) = delete;
  ~Some() {
    ranks_.reset();
    if (is_among()) MPI_Comm_free(&communicator_);
    MPI_Request all = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    for (int done = 0; done == 0;) {
      MPI_Test(&all, &done, MPI_STATUS_IGNORE);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  bool is_among() const { return communicator_ != MPI_COMM_NULL; }
  Ranks& ranks() { return *ranks_; }

 private:
  MPI_Comm communicator_ = MPI_COMM_NULL;
  std::optional<Ranks> ranks_;
};

std::vector<int> counts_up_to(int ranks) {
  std::vector<int> counts;
  for (int count = 1; count < ranks; count *= 2) counts.push_back(count);
  counts.push_back(ranks);
  return counts;
}

std::string name_of_library() {
  std::string text(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  text.resize(std::size_t(length));
  // Open MPI goes on behind a comma, MPICH in columns.
  text = text.substr(0, text.find_first_of(",\n"));
  std::string words;
  for (const char c : text) {
    if (c == ':' || c == '\t') continue;
    if (c != ' ' || (!words.empty() && words.back() != ' ')) words += c;
  }
  return words;
}

void measure(Ranks& ranks, int rounds, Report& report) {
  const double memory = measure_memory(ranks, measured_case(), rounds);
  if (ranks.size() == report.fitted_at) report.memory_bytes_per_us = memory;
  if (ranks.size() > 1) {
    report.links.push_back(measure_links(ranks, rounds));
    if (ranks.size() == report.fitted_at) {
      report.link = fit_links(report.links.back());
      report.overlap = measure_overlap(ranks, rounds);
    }
  }
  for (const PlannedStep& plan : step_kinds(ranks.size())) {
    report.steps.push_back(
        measure_step(ranks, measured_case(), plan, rounds, memory));
  }
}

int run(Ranks& world, int argc, const char* const* argv) {
  const OptionSet own(
      {{"rounds", 9, 1, 99, "how often each is measured, for medians"}});
  const Options options = parse_options(argc, argv, own);
  if (options.help_wanted()) {
    if (world.rank() == 0) {
      std::printf("%s", usage_text("bench --ranks N", own).c_str());
    }
    return 0;
  }
  if (world.size() < 2) {
    throw UsageError("one rank sends nothing: start at least 2");
  }
  const int cores = int(std::max(2U, std::thread::hardware_concurrency()));
  Report report;
  report.ranks = world.size();
  report.mpi = name_of_library();
  const auto counts = counts_up_to(world.size());
  for (const int count : counts) {
    if (count >= 2 && count <= cores) report.fitted_at = count;
  }
  for (const int count : counts) {
    Some some(count);
    if (some.is_among()) {
      measure(some.ranks(), int(options["rounds"]), report);
    }
  }
  if (world.rank() > 0) return 0;
  print(report);
  if (!options.json_file().empty()) {
    OutputFile file("--json", options.json_file());
    file.write(json_of(report));
    file.commit();
  }
  return 0;
}

}  // namespace
}  // namespace fuse::bench

int main(int argc, char** argv) {
  return fuse::run_ranks([&](fuse::Ranks& world) {
    try {
      return fuse::bench::run(world, argc, argv);
    } catch (const fuse::UsageError& error) {
      if (world.rank() == 0) {
        std::fprintf(stderr, "bench: error: %s\n", error.what());
      }
      return 2;
    }
  });
}
