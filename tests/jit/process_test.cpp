#include "fusebook/jit/process.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "fusebook/support/error.h"
#include "support/jit_testing.h"

using namespace jit_testing;
using fuse::ProcessResult;
using fuse::run_process;

namespace {

ProcessResult shell(const std::string& script) {
  return run_process({"sh", "-c", script});
}

// The mask in a line "SigBlk:\t0000..." of /proc/self/status.
unsigned long long mask_in(const std::string& line) {
  return std::stoull(line.substr(line.find(':') + 1), nullptr, 16);
}

volatile sig_atomic_t alarms = 0;
void count_alarm(int) { alarms = alarms + 1; }

}  // namespace

TEST_CASE("the exit code and both outputs come back") {
  const ProcessResult result = shell("echo out; echo err >&2; exit 7");
  CHECK(result.status_known);
  CHECK(result.exit_code == 7);
  CHECK(result.signal == 0);
  CHECK(result.output == "out\nerr\n");
  CHECK(run_process({"/bin/true"}).exit_code == 0);
}

TEST_CASE("a signal that ended the program is told from an exit code") {
  const ProcessResult result = shell("kill -9 $$");
  CHECK(result.signal == SIGKILL);
  CHECK(result.exit_code == -1);
  CHECK(fuse::signal_text(SIGKILL) == "signal 9 (Killed)");
}

TEST_CASE("arguments arrive as they are: no shell takes part") {
  const TempDir dir;
  const std::string trap = "$(touch " + dir / "x" + ") `id` * 'a\" ; ls |\\";
  CHECK(run_process({"printf", "%s|", trap, "", "a b"}).output ==
        trap + "||a b|");
  CHECK(names_in(dir.path()).empty());
}

TEST_CASE("output is kept up to the limit, and the rest does not block") {
  const std::vector<std::string> loud = {
      "sh", "-c", "head -c 300000 /dev/zero | tr '\\0' a; exit 3"};
  const ProcessResult result = run_process(loud, {}, 1000);
  CHECK(result.output == std::string(1000, 'a'));
  CHECK(result.exit_code == 3);
  CHECK(run_process(loud).output == std::string(65536, 'a'));
  CHECK(run_process(loud, {}, 400000).output == std::string(300000, 'a'));
}

TEST_CASE("standard input is empty") {
  CHECK(run_process({"cat"}).output.empty());
  CHECK(run_process({"readlink", "/proc/self/fd/0"}).output == "/dev/null\n");
}

TEST_CASE("a program that cannot be started is an error with its name") {
  const TempDir dir;
  write_text(dir / "plain", "no program");
  write_text(dir / "odd", "neither a script nor a binary");
  chmod((dir / "odd").c_str(), 0755);
  for (const std::string& name :
       {std::string("no-such-program-here"), dir / "plain", dir / "odd"}) {
    std::string message;
    try {
      run_process({name});
    } catch (const fuse::Error& error) {
      message = error.what();
    }
    CHECK(message.starts_with("cannot start '" + name + "': "));
  }
  CHECK_THROWS_AS(run_process({}), fuse::Error);
}

TEST_CASE("the program has no signal blocked and SIGCHLD at its default") {
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &old);
  const auto blocked = run_process({"grep", "SigBlk", "/proc/self/status"});
  sigprocmask(SIG_SETMASK, &old, nullptr);
  CHECK(mask_in(blocked.output) == 0);
}

TEST_CASE("a process that ignores SIGCHLD still gets the output") {
  CHECK(run_child([] {
          signal(SIGCHLD, SIG_IGN);
          const auto result =
              run_process({"grep", "SigIgn", "/proc/self/status"});
          const bool ignored = (mask_in(result.output) >> (SIGCHLD - 1)) & 1U;
          return !result.status_known && !ignored ? 0 : 1;
        }) == 0);
}

TEST_CASE("no other file is inherited, and none is left open") {
  const int open_file = open("/dev/null", O_RDONLY);
  REQUIRE(dup2(open_file, 200) == 200);
  const std::size_t before = names_in("/proc/self/fd").size();
  const std::string listing = run_process({"ls", "/proc/self/fd"}).output;
  // 3 is the folder that ls reads.
  CHECK(listing == "0\n1\n2\n3\n");
  CHECK_THROWS_AS(run_process({"no-such-program-here"}), fuse::Error);
  CHECK(names_in("/proc/self/fd").size() == before);
  close(200);
  close(open_file);
}

TEST_CASE("a process without standard files can run programs") {
  const TempDir dir;
  CHECK(run_child([&] {
          close(0);
          close(1);
          close(2);
          const auto result = shell("cat; echo out; echo err >&2; exit 4");
          return result.output == "out\nerr\n" ? result.exit_code : 1;
        }) == 4);
}

TEST_CASE("variables are replaced, added and otherwise kept") {
  const Env kept("JIT_TEST_KEPT", "same");
  const Env replaced("JIT_TEST_REPLACED", "old");
  const Env longer("JIT_TEST_REPLACED_TOO", "other");
  const auto result = run_process(
      {"sh", "-c",
       "echo $JIT_TEST_KEPT $JIT_TEST_REPLACED $JIT_TEST_ADDED "
       "$JIT_TEST_REPLACED_TOO; env | grep -c '^JIT_TEST_REPLACED='"},
      {"JIT_TEST_REPLACED=new", "JIT_TEST_ADDED=$HOME"});
  CHECK(result.output == "same new $HOME other\n1\n");
}

TEST_CASE("a process left behind with the output open is not waited for") {
  const auto result = shell("sleep 60 & echo $!; exit 5");
  const pid_t left = std::stoi(result.output);
  CHECK(result.exit_code == 5);
  CHECK(kill(left, 0) == 0);  // it still sleeps
  kill(left, SIGKILL);
}

TEST_CASE("signals that arrive meanwhile disturb nothing") {
  struct sigaction action = {};
  struct sigaction old = {};
  action.sa_handler = count_alarm;  // without SA_RESTART
  sigaction(SIGALRM, &action, &old);
  const itimerval often = {{0, 2000}, {0, 2000}};
  setitimer(ITIMER_REAL, &often, nullptr);
  const auto result = shell(
      "for i in 1 2 3 4; do echo $i; sleep 0.02; done; "
      "exit 6");
  const itimerval never = {};
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &old, nullptr);
  CHECK(alarms > 0);
  CHECK(result.output == "1\n2\n3\n4\n");
  CHECK(result.exit_code == 6);
}
