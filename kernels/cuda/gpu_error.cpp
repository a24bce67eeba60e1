#include "fusebook/cuda/gpu_error.h"

#include <fmt/core.h>

#include <array>
#include <cstdio>

namespace fuse {

std::string code_text(const CudaApi& api, cuda::Result code) {
  const char* name = nullptr;
  const char* text = nullptr;
  api.get_error_name(code, &name);
  api.get_error_string(code, &text);
  std::string line = fmt::format("code {}", code);
  if (name != nullptr) line += std::string(" (") + name + ")";
  if (text != nullptr) line += std::string(": ") + text;
  return line;
}

bool is_sticky(cuda::Result code) {
  switch (code) {
    case cuda::ecc_uncorrectable:
    case cuda::nvlink_uncorrectable:
    case cuda::contained:
    case cuda::illegal_address:
    case cuda::launch_timeout:
    case cuda::context_is_destroyed:
    case cuda::assert_failed:
    case cuda::hardware_stack_error:
    case cuda::illegal_instruction:
    case cuda::misaligned_address:
    case cuda::invalid_address_space:
    case cuda::invalid_pc:
    case cuda::launch_failed:
    case cuda::tensor_memory_leak:
    case cuda::external_device:
      return true;
    default:
      return false;
  }
}

std::string_view advice_for(cuda::Result code) {
  switch (code) {
    case cuda::not_initialized:
      return "a process forked after its parent started the GPU cannot use "
             "it: start the GPU only in the child";
    case cuda::deinitialized:
      return "the process is ending and the driver has already shut down";
    case cuda::device_unavailable:
      return "another process has exclusive use of the device, or its compute "
             "mode forbids use (nvidia-smi -q -d COMPUTE)";
    case cuda::no_binary_for_gpu:
    case cuda::invalid_image:
      return "the code was compiled for another device, or by an NVRTC newer "
             "than the driver: clear the kernel cache, or install a newer "
             "driver";
    case cuda::invalid_ptx:
    case cuda::unsupported_ptx_version:
      return "NVRTC is newer than the driver: install a newer driver, or set "
             "FUSEBOOK_NVRTC to an older NVRTC";
    case cuda::jit_compiler_not_found:
      return "the driver's compiler (libnvidia-ptxjitcompiler) is missing: "
             "install the complete driver";
    case cuda::launch_out_of_resources:
      return "the kernel needs more registers than a block of this size gets";
    case cuda::capture_unsupported:
    case cuda::capture_invalidated:
      return "the step did something that cannot be captured in a graph: run "
             "it once beforehand, and read no values while capturing";
    default:
      return {};
  }
}

std::string byte_text(long long bytes) {
  constexpr std::array<const char*, 4> units = {"bytes", "KiB", "MiB", "GiB"};
  double amount = double(bytes);
  std::size_t unit = 0;
  while (amount >= 1024 && unit + 1 < units.size()) {
    amount /= 1024;
    ++unit;
  }
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s",
                amount, units[unit]);
  return text.data();
}

}  // namespace fuse
