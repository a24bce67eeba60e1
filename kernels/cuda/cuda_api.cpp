#include "fusebook/cuda/cuda_api.h"

#include <memory>
#include <utility>

#include "fusebook/support/dynamic_library.h"
#include "fusebook/support/keep_forever.h"

namespace fuse {

CudaDriver load_cuda_driver(const char* library) {
  CallLibrary opened(library);
  if (!opened.is_open()) {
    return {nullptr,
            "the driver's library cannot be opened (" + opened.problem() + ")"};
  }
  auto api = std::make_unique<CudaApi>();
#define CUDA_CALL(member, symbol, parameters) \
  opened.fill(#symbol, &api->member);
#include "fusebook/cuda/cuda_calls.def"
#undef CUDA_CALL
  // The library stays open, too.
  if (opened.missing().empty()) return {keep_forever(std::move(api)), {}};
  return {nullptr,
          "the driver's library '" + std::string(library) +
              "' lacks the function '" + opened.missing() + "'",
          true};
}

}  // namespace fuse
