// Runs that are killed, or interrupted, at a random moment of a cold start: the
// next one is right, and nothing that the first one left remains.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include "support/testing.h"
#include "worker.h"

using namespace hardening;

namespace {

using Clock = std::chrono::steady_clock;

// Compilers that a killed run leaves behind become children of this process,
// so that it can wait for their end.
const int adopted = prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);

void wait_for_orphans() {
  while (wait(nullptr) > 0) {
  }
}

struct Place {
  TempDir dir;
  TempDir notes;
  Surroundings around;

  Place() {
    fs::create_directory(dir / "tmp");
    around.variables = {{"FUSEBOOK_CACHE_DIR", dir / "cache"},
                        {"TMPDIR", dir / "tmp"}};
    // A group of its own, as a shell gives to every command.
    around.prepare = [] { return setpgid(0, 0) == 0; };
  }
  void check_clean() const {
    CHECK(strangers_in(dir / "cache").empty());
    CHECK(names_in(dir / "tmp").empty());
  }
};

// What each run is: a program and the number of microseconds it takes cold, the
// least of a few times: on a busy machine one of them may be many times as long,
// and signals that are spread over it come too late.
struct Program {
  std::vector<std::string> words;
  double microseconds = std::numeric_limits<double>::infinity();

  explicit Program(std::vector<std::string> command)
      : words(std::move(command)) {
    for (int i = 0; i < 5; ++i) {
      const Place place;
      const auto start = Clock::now();
      REQUIRE(run_in(place.around, words).code == 0);
      const std::chrono::duration<double, std::micro> took =
          Clock::now() - start;
      microseconds = std::min(microseconds, took.count());
    }
  }
};

// Starts the program cold, sends `signal` (to it alone, or to the compiler too,
// as a terminal does) after a while, and returns how it ended.
int run_interrupted(const Place& place, const Program& program, int signal,
                    double after, bool whole_group) {
  const pid_t child = start_in(place.around, program.words, place.notes / "out",
                               place.notes / "err");
  setpgid(child, child);
  const timespec pause = {time_t(after / 1e6), long(after * 1e3) % 1000000000L};
  nanosleep(&pause, nullptr);
  kill(whole_group ? -child : child, signal);
  const int code = wait_for(child);
  return code < 0 ? 128 - code : code;  // as a shell counts it
}

// Returns how often the signal came before the program's end. That end comes sooner
// or later as other programs take the machine: the pause is drawn from a span that
// grows when the program was interrupted and shrinks when it was not, so that about
// half are.
template <class CheckNext>
int interrupt_often(const Program& program, int signal, int times,
                    CheckNext check_next) {
  testing::Random random(std::uint64_t(signal) * 1000 + 7);
  double longest = program.microseconds * 1.3;
  int interrupted = 0;
  for (int i = 0; i < times; ++i) {
    const Place place;
    const double after = random.uniform(0, longest);
    CAPTURE(i);
    CAPTURE(after);
    const int code =
        run_interrupted(place, program, signal, after, random.chance(0.5));
    if (code != 0) CHECK(code == 128 + signal);
    if (code != 0) ++interrupted;
    longest *= code != 0 ? 1.05 : 0.95;
    check_next(place);
  }
  wait_for_orphans();
  return interrupted;
}

}  // namespace

namespace {

// `words`, killed so many times; the run after it must say `right`.
void kill_often(std::vector<std::string> words, int times,
                const std::string& right) {
  REQUIRE(adopted == 0);
  words.insert(words.begin(), worker_path());
  const Program program(words);
  const int killed =
      interrupt_often(program, SIGKILL, times, [&](const Place& place) {
        const Outcome next = run_in(place.around, program.words);
        CHECK(next.code == 0);
        CHECK(contains(next.out, right));
        CHECK(next.err.empty());
        wait_for_orphans();
        place.check_clean();
      });
  MESSAGE(killed << " of " << times << " were killed before their end");
  CHECK(killed > times / 4);
}

}  // namespace

TEST_CASE("killed at any moment of a cold run") {
  kill_often({"rounds", "1", "1", "3"}, sized_for_sanitizers(40, 200),
             "wrong=0");
}

TEST_CASE("killed at any moment of a cold run with a kernel of full size") {
  kill_often({"step"}, sized(20, 200), "right");
}

TEST_CASE("interrupted, a recipe exits with 130") {
  REQUIRE(adopted == 0);
  const Program program(
      {HARDENING_RECIPE, "--layers", "2", "--width", "16", "--device", "cpu"});
  const int times = sized(6, 60);
  const int interrupted =
      interrupt_often(program, SIGINT, times, [&](const Place& place) {
        wait_for_orphans();
        const Outcome next = run_worker(place.around, {"step"});
        CHECK(next.code == 0);
        CHECK(next.err.empty());
        place.check_clean();
      });
  MESSAGE(interrupted << " of " << times << " were interrupted");
  CHECK(interrupted > 0);
}
