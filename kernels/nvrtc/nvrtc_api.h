#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fuse {

/// NVRTC, CUDA's run-time compiler, as a table of functions: from CUDA 12 or
/// 13, whichever is installed. Source: NVRTC reference,
/// docs.nvidia.com/cuda/nvrtc.
struct NvrtcApi {
  using Program = struct NvrtcProgramHandle*;

  // nvrtcResult.
  static constexpr int success = 0;
  static constexpr int compilation_failed = 6;
  static constexpr int builtins_failed = 7;

#define NVRTC_CALL(member, symbol, result, parameters) \
  result(*member) parameters = {};
#include "fusebook/nvrtc/nvrtc_calls.def"
#undef NVRTC_CALL
};

/// The newest version of CUDA whose NVRTC is known here.
inline constexpr int newest_cuda_major = 13;

/// NVRTC, opened, with its properties.
struct Nvrtc {
  const NvrtcApi* api = nullptr;
  int major = 0;
  int minor = 0;
  /// 90 for sm_90, ascending, from `oldest_gpu_architecture` on.
  std::vector<int> architectures;
  /// The opened library.
  std::string library;
};

/// Queries a table for its version and architectures. Throws NoGpu on failure.
/// `library` is for messages.
Nvrtc describe_nvrtc(const NvrtcApi& api, std::string library);

/// Opens NVRTC for the rest of the process: the library set in FUSEBOOK_NVRTC,
/// else the newest from CUDA 13 or 12 that is no newer than `newest_major` (a
/// driver rejects code from a newer CUDA), searching the loader's path, the
/// directories that the build was configured with, and those of
/// FUSEBOOK_CUDA_HOME, CUDA_HOME, CUDA_PATH and /usr/local/cuda. Throws NoGpu
/// listing everything tried if there is none.
Nvrtc load_nvrtc(int newest_major = newest_cuda_major);

/// The directories that the build was configured with, separated by ";".
extern const char* const nvrtc_folders;

/// The names that `load_nvrtc` tries, in order. `configured` is like
/// nvrtc_folders.
std::vector<std::string> nvrtc_candidates(
    int newest_major, const std::string& configured = nvrtc_folders);

}  // namespace fuse
