// Many processes share one cache while another one keeps emptying it.
#include <doctest/doctest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "worker.h"

using namespace hardening;

namespace {

constexpr int keys = 8;

struct Process {
  pid_t id = -1;
  std::string out;
  std::string err;
};

Process start_worker(const Surroundings& around, const TempDir& notes,
                     std::vector<std::string> words) {
  static int count = 0;
  Process process;
  process.out = notes / std::to_string(count) + ".out";
  process.err = notes / std::to_string(count) + ".err";
  ++count;
  words.insert(words.begin(), worker_path());
  process.id = start_in(around, words, process.out, process.err);
  return process;
}

std::vector<std::string> rounds_words(int rounds, int seed) {
  return {"rounds", std::to_string(rounds), std::to_string(keys),
          std::to_string(seed)};
}

// The sum of the numbers in a text, one a line.
long sum_of_lines(const std::string& text) {
  long sum = 0;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    sum += std::stol(text.substr(at));
  }
  return sum;
}

}  // namespace

TEST_CASE("a crowd of processes over a cache that another one empties") {
  const int processes = sized_for_sanitizers(16, 64);
  const int rounds = sized_for_sanitizers(6, 50);
  const TempDir dir;
  const TempDir notes;
  fs::create_directory(dir / "tmp");
  Surroundings around;
  around.variables = {{"FUSEBOOK_CACHE_DIR", dir / "cache"},
                      {"TMPDIR", dir / "tmp"}};
  around.seconds = 1200;
  const Process clearing = start_worker(around, notes, {"clear"});
  std::vector<Process> crowd;
  for (int i = 0; i < processes; ++i) {
    crowd.push_back(start_worker(around, notes, rounds_words(rounds, i)));
  }
  long compiled = 0;
  long taken = 0;
  for (const Process& process : crowd) {
    CHECK(wait_for(process.id) == 0);
    const std::string out = read_text(process.out);
    CHECK(number_in(out, "wrong") == 0);
    CHECK(read_text(process.err).empty());
    compiled += number_in(out, "compiler_runs");
    taken += number_in(out, "disk_hits");
  }
  kill(clearing.id, SIGKILL);
  CHECK(wait_for(clearing.id) == -SIGKILL);
  CHECK(compiled + taken == processes * rounds);
  // It was a storm: entries were found, and vanished.
  CHECK(taken > 0);
  CHECK(compiled > keys);
  CHECK(sum_of_lines(read_text(clearing.out)) > keys);
  MESSAGE(compiled << " compiled, " << taken << " taken from the cache");

  const Outcome after = run_worker(around, rounds_words(50, 1));
  CHECK(after.code == 0);
  CHECK(after.err.empty());
  CHECK(strangers_in(dir / "cache").empty());
  CHECK(names_in(dir / "cache").size() <= keys);
  CHECK(names_in(dir / "tmp").empty());
}
