#include "fusebook/distributed/last_word.h"

#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <new>
#include <vector>

namespace fuse {
namespace {

using Flag = std::atomic<int>;
static_assert(Flag::is_always_lock_free, "a signal handler uses it");

// Another rank of this machine, and what to say if it is gone.
struct Peer {
  pid_t process;
  std::string line;
};

// What the signal handler reads; it does not change while that is set.
std::vector<Peer> peers;  // NOLINT(cert-err58-cpp)
Flag* is_said = nullptr;  // in memory of all ranks of this machine
struct sigaction before;

bool is_first_to_speak() {
  return is_said == nullptr || is_said->exchange(1) == 0;
}

// Only the first that is told to stop on a machine looks: later, others are gone
// because they were told.
void on_stop(int signal) {
  const bool looks = is_first_to_speak();
  for (const Peer& each : peers) {
    if (!looks) break;
    if (kill(each.process, 0) == 0 || errno != ESRCH) continue;
    [[maybe_unused]] const ssize_t written =
        write(STDERR_FILENO, each.line.data(), each.line.size());
    break;
  }
  sigaction(SIGTERM, &before, nullptr);
  raise(signal);
}

MPI_Comm ranks_of_machine() {
  MPI_Comm machine = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                      &machine);
  return machine;
}

void find_peers(MPI_Comm machine) {
  int count = 0;
  int all = 0;
  int rank = 0;
  MPI_Comm_size(machine, &count);
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::vector own = {rank, int(getpid())};
  std::vector<int> found(std::size_t(count) * 2);
  MPI_Allgather(own.data(), 2, MPI_INT, found.data(), 2, MPI_INT, machine);
  for (std::size_t k = 0; k < found.size(); k += 2) {
    if (found[k] == rank) continue;
    peers.push_back({found[k + 1],
                     fmt::format("fusebook: rank {} of {} has died, as process "
                                 "{}\n",
                                 found[k], all, found[k + 1])});
  }
}

MPI_Win share_flag(MPI_Comm machine) {
  int rank = 0;
  MPI_Comm_rank(machine, &rank);
  void* own = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate_shared(rank == 0 ? sizeof(Flag) : 0, sizeof(Flag),
                          MPI_INFO_NULL, machine, static_cast<void*>(&own),
                          &window);
  MPI_Aint size = 0;
  int unit = 0;
  void* shared = nullptr;
  MPI_Win_shared_query(window, 0, &size, &unit, static_cast<void*>(&shared));
  if (rank == 0) new (shared) Flag(0);
  MPI_Barrier(machine);
  is_said = std::launder(static_cast<Flag*>(shared));
  return window;
}

}  // namespace

LastWord::LastWord() {
  MPI_Comm machine = ranks_of_machine();
  find_peers(machine);
  window_ = share_flag(machine);
  MPI_Comm_free(&machine);
  struct sigaction stop = {};
  stop.sa_handler = on_stop;
  sigemptyset(&stop.sa_mask);
  sigaction(SIGTERM, &stop, &before);
}

LastWord::~LastWord() {
  MPI_Barrier(MPI_COMM_WORLD);
  sigaction(SIGTERM, &before, nullptr);
  is_said = nullptr;
  peers.clear();
  MPI_Win_free(&window_);
}

void LastWord::say(const std::string& text) {
  std::fflush(nullptr);
  if (!is_first_to_speak()) return;
  std::fputs(("fusebook: " + text + "\n").c_str(), stderr);
}

}  // namespace fuse
