#pragma once

#include "fusebook/prelude/matrix_means.h"

namespace fuse {

/// Averages rows and columns of matrices in host memory, on all threads.
void average_on_host(const MatrixWork& work);

}  // namespace fuse
