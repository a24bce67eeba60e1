#pragma once

#include <cstdint>
#include <string>

namespace fuse {

/// Where a tensor's memory is and its kernels run, like torch.device: the host,
/// a GPU, or the simulated GPU, which runs the same CUDA text of the kernels on
/// the CPU, thread by thread.
struct Device {
  /// The kinds of devices.
  enum class Kind : std::uint8_t {
    cpu,         ///< the host
    cuda,        ///< an NVIDIA GPU
    cuda_sim,    ///< the simulated one
    registered,  ///< the backend passed to register_backend
  };

  Kind kind = Kind::cpu;  ///< The kind of device.
  int index = 0;          ///< The number within its kind.

  bool is_cpu() const { return kind == Kind::cpu; }  ///< True for the host.
  friend bool operator==(const Device&, const Device&) = default;
};

/// The host.
inline constexpr Device cpu_device = {};

/// "cpu", "cuda:0", "cuda-sim".
std::string to_string(const Device& device);

/// The device as one byte, for code that must not depend on devices; 0 is the
/// host. Only the first 64 GPUs are distinguished.
constexpr std::uint8_t memory_code(const Device& device) {
  return std::uint8_t(unsigned(device.kind) | unsigned(device.index) << 2U);
}
constexpr Device device_of_memory(std::uint8_t code) {
  return {Device::Kind(code & 3U), code >> 2U};
}

/// The device with that name: "cpu", "cuda", "cuda:N" or "cuda-sim". Throws
/// UsageError for any other. Does not check whether the device exists.
Device parse_device(const std::string& name);

/// Where new tensors are created by default, as set with
/// torch.set_default_device: the CPU unless changed.
Device default_device();
void set_default_device(const Device& device);  ///< Sets the default device.

}  // namespace fuse
