#pragma once

#include "fusebook/cuda/cuda_api.h"

namespace fuse::cuda_sim {

// Name and description of a result, in the driver's words; null and an error if
// the simulator never returns it.
cuda::Result get_error_name(cuda::Result code, const char** text);
cuda::Result get_error_string(cuda::Result code, const char** text);

}  // namespace fuse::cuda_sim
