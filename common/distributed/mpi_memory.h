#pragma once

#include <optional>

#include "fusebook/device/device.h"

namespace fuse {

/// True if messages go straight from and to the memory of this device: the host's
/// always, a GPU's if the MPI library was built for it, which it says in
/// MPIX_Query_cuda_support (Open MPI, MPICH). All others are copied to the host.
bool mpi_reaches(const Device& device);

/// Answers instead of the library for all GPUs, also simulated ones, whose memory is
/// the host's; for tests. nullopt asks the library again.
void set_mpi_reaches_gpus(std::optional<bool> answer);

}  // namespace fuse
