#pragma once

#include <string>
#include <vector>

#include "fusebook/cuda/module_compiler.h"
#include "fusebook/nvrtc/nvrtc_api.h"

namespace fuse {

/// What to compile for.
struct GpuTarget {
  int architecture = 0;  ///< 90 for 9.0
  /// True: machine code for exactly this architecture. False: PTX, which the
  /// driver of a newer device compiles further.
  bool exact = true;
  /// "sm_90" or "compute_90".
  std::string text() const;
};

/// Machine code if NVRTC supports the device, else PTX for the newest
/// architecture that is not newer than the device. Throws DeviceTooOld, listing
/// what NVRTC supports, if all are newer.
GpuTarget choose_target(const Nvrtc& nvrtc, int capability);

/// The options of every compilation by an NVRTC of that version: no
/// contraction, IEEE rounding of division and square root, denormals kept;
/// register statistics in the log.
std::vector<std::string> nvrtc_options(int nvrtc_major,
                                       const GpuTarget& target);

/// Compiles CUDA text: machine code (a cubin), or PTX with its final zero.
/// `name` is for messages. Throws NoGpu if NVRTC itself is incomplete (its
/// builtins are missing: code 7); Error with its code, its output and the
/// numbered source if the text is invalid.
ModuleImage compile_gpu_code(const Nvrtc& nvrtc, const std::string& source,
                             const std::string& name, const GpuTarget& target);

/// Parses ptxas's output about the kernel `name`; -1 for missing values.
GpuResources read_ptxas_log(const std::string& log, const std::string& name);

/// The source with line numbers.
std::string numbered_source(const std::string& source);

}  // namespace fuse
