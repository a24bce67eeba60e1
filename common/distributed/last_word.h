#pragma once

#include <string>

#include "fusebook/distributed/ranks.h"

namespace fuse {

/// Why a run ended, said once on each machine: by a rank that ends it, or, where
/// one was killed, by another one that its launcher then tells to stop (SIGTERM).
/// Lasts as long as the program; at its end all ranks wait for each other.
class LastWord {
 public:
  LastWord();
  LastWord(const LastWord&) = delete;
  LastWord& operator=(const LastWord&) = delete;
  ~LastWord();

  /// One line, unless a rank of this machine has said one.
  static void say(const std::string& text);

 private:
  MPI_Win window_ = MPI_WIN_NULL;
};

}  // namespace fuse
