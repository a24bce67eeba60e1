#include "fusebook/cuda/cuda_api.h"

#include "fusebook/support/dynamic_library.h"

namespace fuse {

CudaDriver load_cuda_driver(const char* library) {
  CallLibrary opened(library);
  if (!opened.is_open()) {
    return {nullptr,
            "the driver's library cannot be opened (" + opened.problem() + ")"};
  }
  auto* const api = new CudaApi;  // lives forever, like the library
#define CUDA_CALL(member, symbol, parameters) \
  opened.fill(#symbol, &api->member);
#include "fusebook/cuda/cuda_calls.def"
#undef CUDA_CALL
  if (opened.missing().empty()) return {api, {}};
  delete api;
  return {nullptr,
          "the driver's library '" + std::string(library) +
              "' lacks the function '" + opened.missing() + "'",
          true};
}

}  // namespace fuse
