#pragma once

#include <optional>
#include <string>

namespace fuse {

/// What a launcher of ranks leaves in the environment of each.
struct Launched {
  std::string by;  ///< the variable that tells, such as "PMI_SIZE"
  int size = 1;    ///< how many it has started
  int rank = 0;    ///< which of them this is
};

/// The launcher that has started several ranks of this program, if MPI knows of
/// none but this one: it belongs to another MPI library. MPI has been started.
std::optional<Launched> launched_by_another();

/// What to tell the user of it.
std::string told_of(const Launched& other);

}  // namespace fuse
