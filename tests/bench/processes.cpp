#include "bench/processes.h"

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "fusebook/jit/process.h"
#include "fusebook/support/error.h"

namespace fuse::bench {
namespace {

std::vector<Reading> run(const std::vector<std::string>& argv,
                         const std::vector<std::string>& environment) {
  const ProcessResult result = run_process(argv, environment, 1 << 20);
  if (result.exit_code != 0) {
    const std::string how =
        result.signal != 0
            ? "was ended by " + signal_text(result.signal)
            : "ended with exit code " + std::to_string(result.exit_code);
    throw Error(argv[0] + " " + how + ":\n" + result.output);
  }
  std::vector<Reading> readings;
  std::istringstream lines(result.output);
  for (std::string line; std::getline(lines, line);) {
    if (auto reading = parse_reading(line)) readings.push_back(*reading);
  }
  return readings;
}

// "1048576:10" for ten tensors in a row of that size.
std::vector<std::string> runs_of(const std::vector<std::int64_t>& sizes) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < sizes.size();) {
    std::size_t end = i;
    while (end < sizes.size() && sizes[end] == sizes[i]) ++end;
    runs.push_back(std::to_string(sizes[i]) + ":" + std::to_string(end - i));
    i = end;
  }
  return runs;
}

}  // namespace

std::vector<Reading> measure_in_process(int part, int threads) {
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  return run({self.string(), "--measure", std::to_string(part), "--threads",
              std::to_string(threads)},
             {});
}

std::vector<Reading> measure_beside_openmp(int threads) {
#ifdef FUSEBOOK_BENCH_OPENMP
  return run({FUSEBOOK_BENCH_OPENMP, std::to_string(threads)}, {});
#else
  static_cast<void>(threads);
  return {};
#endif
}

std::vector<Reading> measure_torch(const std::string& kind, const Case& wanted,
                                   int threads) {
  const char* const python = std::getenv("FUSEBOOK_PYTHON_TORCH");
  std::vector<std::string> argv = {
      python != nullptr && *python != '\0' ? python : "python3",
      FUSEBOOK_PEER_TORCH, kind, std::to_string(threads), wanted.name};
  for (const std::string& run : runs_of(wanted.sizes)) argv.push_back(run);
  // Without these, large temporaries are mapped and unmapped at every step.
  return run(argv, {"MALLOC_MMAP_THRESHOLD_=137438953472",
                    "MALLOC_TRIM_THRESHOLD_=137438953472",
                    "OMP_NUM_THREADS=" + std::to_string(threads)});
}

}  // namespace fuse::bench
