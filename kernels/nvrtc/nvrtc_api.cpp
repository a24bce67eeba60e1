#include "fusebook/nvrtc/nvrtc_api.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "fusebook/cuda/gpu_error.h"
#include "fusebook/nvrtc/toolkit_folders.h"
#include "fusebook/prelude/gpu_layout.h"
#include "fusebook/support/dynamic_library.h"
#include "fusebook/support/keep_forever.h"

namespace fuse {
namespace {

constexpr int oldest_known = 12;

// A table from the library, which stays open, or the problem.
const NvrtcApi* open_table(const std::string& name, std::string* problem) {
  CallLibrary library(name);
  if (!library.is_open()) {
    *problem = library.problem();
    return nullptr;
  }
  auto api = std::make_unique<NvrtcApi>();
#define NVRTC_CALL(member, symbol, result, parameters) \
  library.fill(#symbol, &api->member);
#include "fusebook/nvrtc/nvrtc_calls.def"
#undef NVRTC_CALL
  if (library.missing().empty()) return keep_forever(std::move(api));
  *problem = name + ": lacks the function '" + library.missing() + "'";
  return nullptr;
}

[[noreturn]] void throw_missing(int newest_major, const std::string& tried) {
  const char* const named = std::getenv("FUSEBOOK_NVRTC");
  std::string message = "cannot compile for a GPU: ";
  if (named != nullptr) {
    message +=
        "FUSEBOOK_NVRTC is '" + std::string(named) + "', which cannot be used";
  } else {
    message += "NVRTC, CUDA's run-time compiler, was not found";
    if (newest_major < newest_cuda_major) {
      message += fmt::format(
          " in a version whose code this driver accepts (CUDA {} or older)",
          newest_major);
    }
  }
  throw NoGpu(message +
              ". Install the CUDA Toolkit, set CUDA_HOME to its location, or "
              "set FUSEBOOK_NVRTC to the library libnvrtc.so itself. Tried:\n" +
              tried);
}

void check_answer(const NvrtcApi& api, int code, const char* call,
                  const std::string& library) {
  if (code == NvrtcApi::success) return;
  throw NoGpu(fmt::format(
      "cannot compile for a GPU: {} of '{}' failed with code {} ({})", call,
      library, code, api.get_error_string(code)));
}

}  // namespace

std::vector<std::string> nvrtc_candidates(int newest_major,
                                          const std::string& configured) {
  const char* const named = std::getenv("FUSEBOOK_NVRTC");
  if (named != nullptr) return {named};
  std::vector<std::string> names;
  for (int major = std::min(newest_major, newest_cuda_major);
       major >= oldest_known; --major) {
    const std::string file = fmt::format("libnvrtc.so.{}", major);
    names.push_back(file);
    for (const std::string& folder : cuda_library_folders(configured)) {
      names.push_back(folder + "/" + file);
    }
  }
  return names;
}

Nvrtc describe_nvrtc(const NvrtcApi& api, std::string library) {
  Nvrtc found;
  found.api = &api;
  found.library = std::move(library);
  int count = 0;
  check_answer(api, api.version(&found.major, &found.minor), "nvrtcVersion",
               found.library);
  check_answer(api, api.get_num_supported_archs(&count),
               "nvrtcGetNumSupportedArchs", found.library);
  found.architectures.resize(std::size_t(std::max(count, 0)));
  check_answer(api, api.get_supported_archs(found.architectures.data()),
               "nvrtcGetSupportedArchs", found.library);
  std::sort(found.architectures.begin(), found.architectures.end());
  std::erase_if(found.architectures, [](int architecture) {
    return architecture < oldest_gpu_architecture;
  });
  return found;
}

Nvrtc load_nvrtc(int newest_major) {
  std::string tried;
  for (const std::string& name : nvrtc_candidates(newest_major)) {
    std::string problem;
    const NvrtcApi* const api = open_table(name, &problem);
    if (api != nullptr) return describe_nvrtc(*api, name);
    tried += "  " + problem + "\n";
  }
  throw_missing(newest_major, tried);
}

}  // namespace fuse
