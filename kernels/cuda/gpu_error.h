#pragma once

#include <string>
#include <string_view>

#include "fusebook/cuda/cuda_api.h"
#include "fusebook/support/error.h"

namespace fuse {

/// No GPU can be used: there is no driver, no device, or no compiler for it. A
/// caller with a choice falls back to the CPU.
class NoGpu : public Error {
 public:
  using Error::Error;
};

/// The device is older than every architecture that the compiler supports.
class DeviceTooOld : public NoGpu {
 public:
  using NoGpu::NoGpu;
};

/// "code 2 (CUDA_ERROR_OUT_OF_MEMORY): out of memory". Never throws or accesses
/// a device.
std::string code_text(const CudaApi& api, cuda::Result code);

/// True for a code after which nothing can run in the context.
bool is_sticky(cuda::Result code);

/// What to do about a code; empty if the code is self-explanatory.
std::string_view advice_for(cuda::Result code);

/// A human-readable number of bytes: "1.5 GiB".
std::string byte_text(long long bytes);

}  // namespace fuse
