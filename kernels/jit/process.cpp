#include "fusebook/jit/process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "fusebook/support/error.h"
#include "fusebook/support/file_io.h"

namespace fuse {
namespace {

// Frees the two objects that posix_spawn reads.
struct SpawnPlan {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;

  SpawnPlan() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
};

// A child with an inherited ignored SIGCHLD could not wait for its own
// children.
void set_signals(SpawnPlan& plan) {
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&plan.attributes, &none);
  sigset_t defaults;
  sigemptyset(&defaults);
  for (const int signal : {SIGCHLD, SIGPIPE, SIGXFSZ}) {
    sigaddset(&defaults, signal);
  }
  posix_spawnattr_setsigdefault(&plan.attributes, &defaults);
  posix_spawnattr_setflags(&plan.attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

void set_files(SpawnPlan& plan, int output) {
  posix_spawn_file_actions_addopen(&plan.actions, STDIN_FILENO, "/dev/null",
                                   O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&plan.actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&plan.actions, output, STDERR_FILENO);
#if defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 34)
  posix_spawn_file_actions_addclosefrom_np(&plan.actions, STDERR_FILENO + 1);
#endif
#endif
}

bool same_variable(std::string_view a, std::string_view b) {
  const std::size_t length = a.find('=');
  return length != std::string_view::npos && b.size() > length &&
         a.substr(0, length + 1) == b.substr(0, length + 1);
}

std::vector<char*> merge_environment(const std::vector<std::string>& changes) {
  std::vector<char*> merged;
  for (char** variable = environ; variable != nullptr && *variable != nullptr;
       ++variable) {
    const bool changed = std::any_of(
        changes.begin(), changes.end(),
        [&](const auto& change) { return same_variable(change, *variable); });
    if (!changed) merged.push_back(*variable);
  }
  for (const std::string& change : changes) {
    merged.push_back(const_cast<char*>(change.c_str()));
  }
  merged.push_back(nullptr);
  return merged;
}

pid_t spawn(const std::vector<std::string>& argv,
            const std::vector<std::string>& environment, int output) {
  SpawnPlan plan;
  set_signals(plan);
  set_files(plan, output);
  std::vector<char*> arguments;
  for (const std::string& word : argv) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  pid_t child = -1;
  const int error =
      posix_spawnp(&child, arguments[0], &plan.actions, &plan.attributes,
                   arguments.data(), merge_environment(environment).data());
  if (error == 0) return child;
  errno = error;
  throw Error("cannot start '" + argv[0] + "': " + errno_text());
}

void set_status(int status, ProcessResult* result) {
  if (WIFEXITED(status)) result->exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result->signal = WTERMSIG(status);
}

// Returns whether the child has ended; if `options` is 0, always true.
bool reap(pid_t child, int options, ProcessResult* result) {
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, options);
    if (ended == child) {
      set_status(status, result);
      return true;
    }
    if (ended == 0) return false;
    if (errno == EINTR) continue;
    result->status_known = false;
    return true;
  }
}

constexpr std::size_t read_size = 4096;

enum class Read { some, nothing_yet, end };

Read read_some(int fd, std::size_t limit, std::string* output) {
  std::array<char, read_size> chunk;
  const ssize_t count = read(fd, chunk.data(), chunk.size());
  if (count < 0) {
    return errno == EAGAIN || errno == EINTR ? Read::nothing_yet : Read::end;
  }
  const std::size_t room = limit - std::min(limit, output->size());
  output->append(chunk.data(), std::min(room, std::size_t(count)));
  return count == 0 ? Read::end : Read::some;
}

// The output ends with the child. If a process that the child left behind keeps
// the pipe open, it is not waited for, however much it writes.
void collect(pid_t child, int fd, std::size_t limit, ProcessResult* result) {
  constexpr int patience_ms = 50;
  pollfd wanted = {fd, POLLIN, 0};
  bool ended = false;
  while (!ended) {
    poll(&wanted, 1, patience_ms);
    ended = reap(child, WNOHANG, result);
    if (read_some(fd, limit, &result->output) == Read::end) break;
  }
  if (!ended) reap(child, 0, result);
  for (std::size_t rest = 0; ended && rest < limit; rest += read_size) {
    if (read_some(fd, limit, &result->output) != Read::some) break;
  }
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& argv,
                          const std::vector<std::string>& environment,
                          std::size_t output_limit) {
  if (argv.empty()) throw Error("cannot start a program without a name");
  std::array<int, 2> ends = {-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error("cannot start '" + argv[0] +
                "': cannot create a pipe: " + errno_text());
  }
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  // If the three standard files are closed, the pipe takes their numbers, which
  // the child needs for its own.
  writer = UniqueFd(fcntl(writer.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!writer.valid()) {
    throw Error("cannot start '" + argv[0] +
                "': cannot create a pipe: " + errno_text());
  }
  fcntl(reader.get(), F_SETFL, O_NONBLOCK);
  const pid_t child = spawn(argv, environment, writer.get());
  writer = UniqueFd();
  ProcessResult result;
  collect(child, reader.get(), output_limit, &result);
  return result;
}

std::string signal_text(int signal) {
  const char* const name = sigdescr_np(signal);
  return fmt::format("signal {} ({})", signal,
                     name == nullptr ? "unknown" : name);
}

}  // namespace fuse
