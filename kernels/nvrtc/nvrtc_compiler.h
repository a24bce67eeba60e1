#pragma once

#include <functional>
#include <memory>

#include "fusebook/cuda/module_compiler.h"
#include "fusebook/nvrtc/nvrtc_api.h"

namespace fuse {

/// Compiles with NVRTC, which is opened for the first kernel, or takes the code
/// from the disk cache. The key is the source, the options including the
/// architecture, and the version of NVRTC. What was compiled ahead
/// (`load_kernels`) is taken from there, without NVRTC.
std::shared_ptr<ModuleCompiler> make_nvrtc_compiler();

/// The same with another source of NVRTC: called for the first kernel, and
/// again as long as it throws. The device's driver accepts code from CUDA
/// `newest_major` and older.
std::shared_ptr<ModuleCompiler> make_nvrtc_compiler(
    std::function<Nvrtc()> open_nvrtc, int newest_major = newest_cuda_major);

/// Number of times this process ran NVRTC, and number of kernels taken from the
/// disk cache, or from a file of packed kernels, instead.
struct NvrtcCounters {
  long compiler_runs = 0;
  long disk_hits = 0;
  long pack_hits = 0;
};
NvrtcCounters nvrtc_counters();

}  // namespace fuse
