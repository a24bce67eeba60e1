#pragma once

#include <mpi.h>

namespace fuse {

/// Throws Error with what MPI says of a code that is no success.
void check_mpi(int code, const char* call);

}  // namespace fuse
