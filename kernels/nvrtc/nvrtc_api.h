#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fuse {

/// NVRTC, CUDA's run-time compiler, as a table of calls: from CUDA 12 or 13,
/// whichever library is there. Source: NVRTC reference,
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

/// NVRTC, opened and asked what it can do.
struct Nvrtc {
  const NvrtcApi* api = nullptr;
  int major = 0;
  int minor = 0;
  /// 90 for sm_90, in rising order, from `oldest_gpu_architecture` on.
  std::vector<int> architectures;
  /// What was opened.
  std::string library;
};

/// Asks a table for its version and architectures. Throws NoGpu when it cannot
/// say. `library` is for messages.
Nvrtc describe_nvrtc(const NvrtcApi& api, std::string library);

/// Opens NVRTC, for the rest of the process: the library that FUSEBOOK_NVRTC
/// names, else the newest from CUDA 13 or 12 that is no newer than
/// `newest_major` (a driver takes no code from a newer CUDA), on the loader's
/// path, in the folders that the build was configured with, and in those of
/// FUSEBOOK_CUDA_HOME, CUDA_HOME, CUDA_PATH and /usr/local/cuda. Throws NoGpu
/// with all that was tried when there is none.
Nvrtc load_nvrtc(int newest_major = 13);

/// The folders that the build was configured with, with ";" between them.
extern const char* const nvrtc_folders;

/// The names that `load_nvrtc` tries, in order. `configured` as nvrtc_folders.
std::vector<std::string> nvrtc_candidates(
    int newest_major, const std::string& configured = nvrtc_folders);

}  // namespace fuse
