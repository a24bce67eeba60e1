#pragma once

#include <string>
#include <string_view>

#include "fusebook/cuda/cuda_api.h"
#include "fusebook/support/error.h"

namespace fuse {

/// No GPU can be used here: no driver, no device, or nothing to compile for it
/// with. Whoever may choose falls back to the CPU.
class NoGpu : public Error {
 public:
  using Error::Error;
};

/// The device is older than every architecture that the compiler knows.
class DeviceTooOld : public NoGpu {
 public:
  using NoGpu::NoGpu;
};

/// "code 2 (CUDA_ERROR_OUT_OF_MEMORY): out of memory". Never throws, asks
/// nothing of a device.
std::string code_text(const CudaApi& api, cuda::Result code);

/// True for a code after which nothing can run in the context any more.
bool is_sticky(cuda::Result code);

/// What to do about a code; empty when the code says it all.
std::string_view advice_for(cuda::Result code);

/// A number of bytes for people: "1.5 GiB".
std::string byte_text(long long bytes);

}  // namespace fuse
