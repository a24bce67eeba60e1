#pragma once

#include <cstdint>
#include <string>

namespace fuse {

/// Where a tensor lies and its kernels run, as torch.device: the host, a GPU,
/// or the simulated GPU, which runs the very CUDA text of the kernels on the
/// CPU, thread by thread.
struct Device {
  /// The kinds of devices.
  enum class Kind : std::uint8_t {
    cpu,         ///< the host
    cuda,        ///< an NVIDIA GPU
    cuda_sim,    ///< the simulated one
    registered,  ///< that of the backend that was given to register_backend
  };

  Kind kind = Kind::cpu;  ///< Which kind of device.
  int index = 0;          ///< Its number among those of its kind.

  bool is_cpu() const { return kind == Kind::cpu; }  ///< True for the host.
  friend bool operator==(const Device&, const Device&) = default;
};

/// The host.
inline constexpr Device cpu_device = {};

/// "cpu", "cuda:0", "cuda-sim".
std::string to_string(const Device& device);

/// The device as one byte, for what must not know of devices; 0 is the host.
/// Of GPUs the first 64 differ.
constexpr std::uint8_t memory_code(const Device& device) {
  return std::uint8_t(unsigned(device.kind) | unsigned(device.index) << 2U);
}
constexpr Device device_of_memory(std::uint8_t code) {
  return {Device::Kind(code & 3U), code >> 2U};
}

/// The device of a name: "cpu", "cuda", "cuda:N" or "cuda-sim". Throws
/// UsageError for any other. Whether there is one is another question.
Device parse_device(const std::string& name);

/// Where new tensors lie unless told otherwise, as torch.set_default_device
/// says: the CPU, until it is set.
Device default_device();
void set_default_device(const Device& device);  ///< Sets where new tensors lie.

}  // namespace fuse
