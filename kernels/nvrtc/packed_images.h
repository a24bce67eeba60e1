#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fusebook/cuda/module_compiler.h"
#include "fusebook/nvrtc/nvrtc_compile.h"

namespace fuse {

/// An image as an entry of the disk cache, or of a file of packed kernels, and
/// back. Nothing for bytes that are none.
std::string pack_image(const ModuleImage& image);
std::optional<ModuleImage> unpack_image(std::string_view entry);

/// The key of a kernel in a pack (see `pack_key`): it was compiled for `target`
/// by the NVRTC of that CUDA version, which only that version's drivers and
/// newer ones accept.
std::string packed_image_key(const GpuTarget& target, int cuda_major,
                             const std::string& source);

/// The kernel of `source`, compiled ahead (`load_kernels`), for a device of
/// this capability whose driver accepts code from CUDA `newest_major` or older:
/// machine code for exactly this device, else PTX for the newest architecture
/// that is not newer than the device.
std::optional<ModuleImage> find_packed_image(const std::string& source,
                                             int capability, int newest_major);

/// True if some kernels were compiled ahead for such a device.
bool have_packed_images(int capability, int newest_major);

}  // namespace fuse
