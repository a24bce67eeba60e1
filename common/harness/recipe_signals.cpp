#include "fusebook/harness/recipe_signals.h"

#include <unistd.h>

#include <array>
#include <climits>
#include <cstring>

namespace fuse {
namespace {

constexpr int exit_interrupted = 130;

/// Read by the handler, which may not touch the heap.
std::array<std::array<char, PATH_MAX>, 2> doomed_files{};

void on_interrupt(int) {
  for (const auto& file : doomed_files) {
    if (file[0] != '\0') unlink(file.data());
  }
  _exit(exit_interrupted);
}

/// A handler that does nothing, unlike SIG_IGN, is not passed on to programs
/// that the recipe starts, such as the compiler.
void on_closed_pipe(int) {}

void install(int signal, void (*handler)(int), struct sigaction* old) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, nullptr, old);
  // Someone who started the program with signals ignored wants them ignored.
  if (old->sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
}

void remember(std::array<char, PATH_MAX>& slot, const std::string& path) {
  slot[0] = '\0';
  if (path.size() >= slot.size()) return;
  std::memcpy(slot.data(), path.c_str(), path.size() + 1);
}

}  // namespace

RecipeSignals::RecipeSignals() {
  install(SIGINT, on_interrupt, &old_interrupt_);
  install(SIGPIPE, on_closed_pipe, &old_pipe_);
}

RecipeSignals::~RecipeSignals() {
  sigaction(SIGINT, &old_interrupt_, nullptr);
  sigaction(SIGPIPE, &old_pipe_, nullptr);
}

void remove_on_interrupt(const std::string& first, const std::string& second) {
  remember(doomed_files[0], first);
  remember(doomed_files[1], second);
}

}  // namespace fuse
