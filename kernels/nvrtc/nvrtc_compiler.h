#pragma once

#include <functional>
#include <memory>

#include "fusebook/cuda/module_compiler.h"
#include "fusebook/nvrtc/nvrtc_api.h"

namespace fuse {

/// Compiles with NVRTC, which is opened for the first kernel, or takes the code
/// from the disk cache. The key is the source, the options including the
/// architecture, and the version of NVRTC.
std::shared_ptr<ModuleCompiler> make_nvrtc_compiler();

/// The same with another source of NVRTC: called for the first kernel, and
/// again as long as it throws.
std::shared_ptr<ModuleCompiler> make_nvrtc_compiler(
    std::function<Nvrtc()> open_nvrtc);

/// Number of times this process ran NVRTC, and number of kernels taken from the
/// disk cache instead.
struct NvrtcCounters {
  long compiler_runs = 0;
  long disk_hits = 0;
};
NvrtcCounters nvrtc_counters();

}  // namespace fuse
