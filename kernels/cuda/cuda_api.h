#pragma once

#include <cstddef>
#include <string>

#include "fusebook/cuda/cuda_types.h"

namespace fuse {

/// CUDA's driver as a table of calls. The library links no part of CUDA: this
/// is the real driver when its library could be opened, a simulator, or what a
/// test puts in its place. All calls must be there, and be as safe to use from
/// several threads as the driver's.
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

/// What became of opening a driver: a complete table, or why there is none.
struct CudaDriver {
  const CudaApi* api = nullptr;
  /// One sentence; empty when `api` is there.
  std::string problem;
  /// The library is there but lacks a call: it is too old.
  bool too_old = false;
};

/// Opens the driver's library, for the rest of the process. Never throws.
CudaDriver load_cuda_driver(const char* library = "libcuda.so.1");

}  // namespace fuse
