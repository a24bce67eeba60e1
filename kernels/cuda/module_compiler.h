#pragma once

#include <string>

namespace fuse {

/// What a compiled kernel takes of a device; -1: not known.
struct GpuResources {
  int registers = -1;     ///< a thread
  int spill_stores = -1;  ///< bytes a thread
  int spill_loads = -1;   ///< bytes a thread
  int shared_bytes = -1;  ///< a block
  friend bool operator==(const GpuResources&, const GpuResources&) = default;
};

/// A kernel's code as CudaApi::module_load_data takes it.
struct ModuleImage {
  std::string bytes;
  GpuResources resources;
};

/// Turns CUDA text into code for a device. The real one asks NVRTC; a simulator
/// brings its own, for a CudaApi of its own.
class ModuleCompiler {
 public:
  ModuleCompiler() = default;
  virtual ~ModuleCompiler() = default;
  ModuleCompiler(const ModuleCompiler&) = delete;
  ModuleCompiler& operator=(const ModuleCompiler&) = delete;

  /// Compiles `source`, which exports the kernel `gpu_kernel_name`, for a
  /// device of this capability (90 for 9.0). Called by several threads at once.
  /// Throws NoGpu (DeviceTooOld) when nothing can be compiled for it at all,
  /// Error with the compiler's words and the numbered source when this source
  /// cannot be.
  virtual ModuleImage compile(const std::string& source, int capability) = 0;

  /// Throws what `compile` would throw for any source at all.
  virtual void check(int /*capability*/) {}
};

}  // namespace fuse
