#pragma once

#include <string>
#include <vector>

#include "fusebook/cuda/module_compiler.h"
#include "fusebook/nvrtc/nvrtc_api.h"

namespace fuse {

/// What to compile for.
struct GpuTarget {
  int architecture = 0;  ///< 90 for 9.0
  /// True: machine code for exactly this architecture. False: PTX, from which
  /// the driver of a newer device makes its own.
  bool exact = true;
  /// "sm_90" or "compute_90".
  std::string text() const;
};

/// Machine code where NVRTC knows the device, else PTX for the newest
/// architecture that is no newer than it. Throws DeviceTooOld, with what NVRTC
/// does know, when all are newer.
GpuTarget choose_target(const Nvrtc& nvrtc, int capability);

/// The options of every compilation: no contraction, division and square root
/// as IEEE rounds them, denormals kept; figures on registers in the log.
std::vector<std::string> nvrtc_options(const Nvrtc& nvrtc,
                                       const GpuTarget& target);

/// Compiles CUDA text: machine code (a cubin), or PTX with its final zero.
/// `name` is for messages. Throws NoGpu when NVRTC itself is not whole (its
/// builtins are missing: code 7); Error with its code, its words and the
/// numbered source when the text is at fault.
ModuleImage compile_gpu_code(const Nvrtc& nvrtc, const std::string& source,
                             const std::string& name, const GpuTarget& target);

/// Reads what ptxas wrote about the kernel `name`; -1 for what is not there.
GpuResources read_ptxas_log(const std::string& log, const std::string& name);

/// Every line with its number.
std::string numbered_source(const std::string& source);

}  // namespace fuse
