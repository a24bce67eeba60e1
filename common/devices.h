#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gpu.h"

namespace fuse {

/// Where a tensor lies and its kernels run, as torch.device: the host, a GPU,
/// or the simulated GPU, which runs the very CUDA text of the kernels on the
/// CPU, thread by thread.
struct Device {
  enum class Kind : std::uint8_t { cpu, cuda, cuda_sim };

  Kind kind = Kind::cpu;
  int index = 0;

  bool is_cpu() const { return kind == Kind::cpu; }
  friend bool operator==(const Device&, const Device&) = default;
};

/// "cpu", "cuda:0", "cuda-sim".
std::string to_string(const Device& device);

/// The device of a name: "cpu", "cuda", "cuda:N" or "cuda-sim". Throws
/// UsageError for any other. Whether there is one is another question.
Device parse_device(const std::string& name);

/// Where new tensors lie unless told otherwise: the CPU, until it is set.
Device default_device();
void set_default_device(const Device& device);

/// A GPU in use, or the simulated one. Throws NoGpu when there is none at all,
/// Error when it is another one that is missing or it cannot be started.
std::shared_ptr<Gpu> gpu_of(const Device& device);

/// The first GPU of this machine, or else the CPU with the reason in `why`.
Device best_device(std::string* why);

}  // namespace fuse
