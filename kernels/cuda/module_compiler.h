#pragma once

#include <string>

namespace fuse {

/// Resources used by a compiled kernel; -1 if unknown.
struct GpuResources {
  int registers = -1;     ///< per thread
  int spill_stores = -1;  ///< bytes per thread
  int spill_loads = -1;   ///< bytes per thread
  int shared_bytes = -1;  ///< per block
  friend bool operator==(const GpuResources&, const GpuResources&) = default;
};

/// A kernel's code in a format accepted by CudaApi::module_load_data.
struct ModuleImage {
  std::string bytes;
  GpuResources resources;
};

/// Compiles CUDA text for a device. The real implementation uses NVRTC; a
/// simulator has its own, matching its CudaApi.
class ModuleCompiler {
 public:
  ModuleCompiler() = default;
  virtual ~ModuleCompiler() = default;
  ModuleCompiler(const ModuleCompiler&) = delete;
  ModuleCompiler& operator=(const ModuleCompiler&) = delete;

  /// Compiles `source`, which exports the kernel `gpu_kernel_name`, for a
  /// device of this capability (90 for 9.0). Called concurrently by several
  /// threads. Throws NoGpu (DeviceTooOld) if nothing at all can be compiled for
  /// it, Error with the compiler's output and the numbered source if this
  /// source cannot be compiled.
  virtual ModuleImage compile(const std::string& source, int capability) = 0;

  /// Throws whatever `compile` would throw for any source.
  virtual void check(int /*capability*/) {}
};

}  // namespace fuse
