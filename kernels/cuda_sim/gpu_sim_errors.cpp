#include "fusebook/cuda_sim/gpu_sim_errors.h"

namespace fuse::cuda_sim {
namespace {

using cuda::Result;

struct CodeName {
  Result code;
  const char* name;
  const char* text;
};
constexpr CodeName code_names[] = {
    {cuda::success, "CUDA_SUCCESS", "no error"},
    {cuda::invalid_value, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {cuda::out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {cuda::invalid_device, "CUDA_ERROR_INVALID_DEVICE",
     "invalid device ordinal"},
    {cuda::launch_failed, "CUDA_ERROR_LAUNCH_FAILED",
     "unspecified launch failure"},
    {cuda::cooperative_launch_too_large,
     "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
     "too many blocks in cooperative launch"},
    {cuda::not_supported, "CUDA_ERROR_NOT_SUPPORTED",
     "operation not supported"},
    {cuda::capture_unsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {cuda::capture_invalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
};

const CodeName* find_code(Result code) {
  for (const CodeName& known : code_names) {
    if (known.code == code) return &known;
  }
  return nullptr;
}

}  // namespace

Result get_error_name(Result code, const char** text) {
  const CodeName* const known = find_code(code);
  *text = known == nullptr ? nullptr : known->name;
  return known == nullptr ? cuda::invalid_value : cuda::success;
}

Result get_error_string(Result code, const char** text) {
  const CodeName* const known = find_code(code);
  *text = known == nullptr ? nullptr : known->text;
  return known == nullptr ? cuda::invalid_value : cuda::success;
}

}  // namespace fuse::cuda_sim
