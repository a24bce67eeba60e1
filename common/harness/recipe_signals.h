#pragma once

#include <csignal>
#include <string>

namespace fuse {

/// While it lives, Ctrl-C ends the program with exit code 130, and a closed
/// pipe on standard output is an error of the write instead of a silent death.
/// Only a recipe makes one; the library installs no handlers.
class RecipeSignals {
 public:
  RecipeSignals();
  ~RecipeSignals();
  RecipeSignals(const RecipeSignals&) = delete;
  RecipeSignals& operator=(const RecipeSignals&) = delete;

 private:
  struct sigaction old_interrupt_{};
  struct sigaction old_pipe_{};
};

/// Names up to two files that an interrupt must remove; empty for none.
void remove_on_interrupt(const std::string& first, const std::string& second);

}  // namespace fuse
