#pragma once

#include <cstddef>
#include <string>

#include "fusebook/cuda/cuda_types.h"

namespace fuse {

/// The CUDA driver as a table of functions. The library does not link against
/// CUDA: this is the real driver if its library could be opened, a simulator,
/// or a substitute from a test. All functions must be present, and as
/// thread-safe as the driver's.
struct CudaApi {
  using Address = cuda::Address;
  using Context = cuda::Context;
  using Device = cuda::Device;
  using Event = cuda::Event;
  using Function = cuda::Function;
  using Graph = cuda::Graph;
  using GraphExec = cuda::GraphExec;
  using Module = cuda::Module;
  using Result = cuda::Result;
  using Stream = cuda::Stream;

#define CUDA_CALL(member, symbol, parameters) Result(*member) parameters = {};
#include "fusebook/cuda/cuda_calls.def"
#undef CUDA_CALL
};

/// The result of opening a driver: a complete table, or why there is none.
struct CudaDriver {
  const CudaApi* api = nullptr;
  /// One sentence; empty if `api` is set.
  std::string problem;
  /// The library exists but lacks a function: it is too old.
  bool too_old = false;
};

/// Opens the driver's library for the rest of the process. Never throws.
CudaDriver load_cuda_driver(const char* library = "libcuda.so.1");

}  // namespace fuse
