// What the library declares of CUDA's interfaces, compared with CUDA's own
// headers where they are installed. Nothing of CUDA is linked.
#include "fusebook/cuda/cuda_types.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <type_traits>

#include "fusebook/cuda/cuda_api.h"
#include "fusebook/nvrtc/nvrtc_api.h"

#if __has_include(<cuda.h>) && __has_include(<nvrtc.h>)

#include <cuda.h>
#include <nvrtc.h>

namespace cuda = fuse::cuda;

namespace {

// Alike in the way they are passed: both pointers, or integers of one size.
template <class Ours, class Theirs>
constexpr bool passes_alike() {
  if constexpr (std::is_pointer_v<Ours> || std::is_pointer_v<Theirs>) {
    return std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>;
  } else {
    return sizeof(Ours) == sizeof(Theirs) &&
           (std::is_integral_v<Ours> || std::is_enum_v<Ours>) ==
               (std::is_integral_v<Theirs> || std::is_enum_v<Theirs>);
  }
}

template <class R, class... Ours, class S, class... Theirs>
constexpr bool alike(R (*)(Ours...), S (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) == sizeof...(Theirs)) {
    return passes_alike<R, S>() && (passes_alike<Ours, Theirs>() && ...);
  } else {
    return false;
  }
}

// What a pointer points to, where that is a number or a handle.
template <class T>
concept PointsToValue =
    std::is_pointer_v<T> && (std::is_pointer_v<std::remove_pointer_t<T>> ||
                             std::is_arithmetic_v<std::remove_pointer_t<T>> ||
                             std::is_enum_v<std::remove_pointer_t<T>>);

template <class T>
constexpr std::size_t value_bytes() {
  if constexpr (PointsToValue<T>) {
    return sizeof(std::remove_pointer_t<T>);
  } else {
    return 0;
  }
}

template <class R, class... A>
constexpr std::size_t pointee_bytes(R (*)(A...)) {
  return (value_bytes<A>() + ...);
}

// cuda.h's own declarations; its macros put the versioned names in the place of
// those here. Two symbols have no version of their own before CUDA 13.
#define CUDA_CALL(member, symbol, parameters)                              \
  static_assert(alike(decltype(fuse::CudaApi::member)(nullptr),            \
                      decltype (&symbol)(nullptr)),                        \
                #symbol);                                                  \
  static_assert(pointee_bytes(decltype(fuse::CudaApi::member)(nullptr)) == \
                    pointee_bytes(decltype (&symbol)(nullptr)),            \
                #symbol);
#include "fusebook/cuda/cuda_calls.def"
#undef CUDA_CALL

#define NVRTC_CALL(member, symbol, result, parameters)           \
  static_assert(alike(decltype(fuse::NvrtcApi::member)(nullptr), \
                      decltype (&symbol)(nullptr)),              \
                #symbol);
#include "fusebook/nvrtc/nvrtc_calls.def"
#undef NVRTC_CALL

static_assert(sizeof(cuda::Address) == sizeof(CUdeviceptr));
static_assert(sizeof(cuda::Device) == sizeof(CUdevice));

static_assert(cuda::success == CUDA_SUCCESS);
static_assert(cuda::invalid_value == CUDA_ERROR_INVALID_VALUE);
static_assert(cuda::out_of_memory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(cuda::not_initialized == CUDA_ERROR_NOT_INITIALIZED);
static_assert(cuda::deinitialized == CUDA_ERROR_DEINITIALIZED);
static_assert(cuda::stub_library == CUDA_ERROR_STUB_LIBRARY);
static_assert(cuda::device_unavailable == CUDA_ERROR_DEVICE_UNAVAILABLE);
static_assert(cuda::no_device == CUDA_ERROR_NO_DEVICE);
static_assert(cuda::invalid_device == CUDA_ERROR_INVALID_DEVICE);
static_assert(cuda::invalid_image == CUDA_ERROR_INVALID_IMAGE);
static_assert(cuda::no_binary_for_gpu == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(cuda::ecc_uncorrectable == CUDA_ERROR_ECC_UNCORRECTABLE);
static_assert(cuda::invalid_ptx == CUDA_ERROR_INVALID_PTX);
static_assert(cuda::nvlink_uncorrectable == CUDA_ERROR_NVLINK_UNCORRECTABLE);
static_assert(cuda::jit_compiler_not_found ==
              CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
static_assert(cuda::unsupported_ptx_version ==
              CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
static_assert(cuda::not_found == CUDA_ERROR_NOT_FOUND);
static_assert(cuda::not_ready == CUDA_ERROR_NOT_READY);
static_assert(cuda::illegal_address == CUDA_ERROR_ILLEGAL_ADDRESS);
static_assert(cuda::launch_out_of_resources ==
              CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
static_assert(cuda::launch_timeout == CUDA_ERROR_LAUNCH_TIMEOUT);
static_assert(cuda::context_is_destroyed == CUDA_ERROR_CONTEXT_IS_DESTROYED);
static_assert(cuda::assert_failed == CUDA_ERROR_ASSERT);
static_assert(cuda::hardware_stack_error == CUDA_ERROR_HARDWARE_STACK_ERROR);
static_assert(cuda::illegal_instruction == CUDA_ERROR_ILLEGAL_INSTRUCTION);
static_assert(cuda::misaligned_address == CUDA_ERROR_MISALIGNED_ADDRESS);
static_assert(cuda::invalid_address_space == CUDA_ERROR_INVALID_ADDRESS_SPACE);
static_assert(cuda::invalid_pc == CUDA_ERROR_INVALID_PC);
static_assert(cuda::launch_failed == CUDA_ERROR_LAUNCH_FAILED);
static_assert(cuda::cooperative_launch_too_large ==
              CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
static_assert(cuda::not_supported == CUDA_ERROR_NOT_SUPPORTED);
// Not in the headers of every CUDA 12.
static_assert(cuda::contained == 226);
static_assert(cuda::tensor_memory_leak == 721);
static_assert(cuda::external_device == CUDA_ERROR_EXTERNAL_DEVICE);
static_assert(cuda::system_driver_mismatch ==
              CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
static_assert(cuda::compat_not_supported ==
              CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
static_assert(cuda::capture_unsupported ==
              CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
static_assert(cuda::capture_invalidated ==
              CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

static_assert(cuda::attribute_max_threads_per_block ==
              CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
static_assert(cuda::attribute_multiprocessor_count ==
              CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(cuda::attribute_l2_cache_size ==
              CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
static_assert(cuda::attribute_capability_major ==
              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(cuda::attribute_capability_minor ==
              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(cuda::attribute_cooperative_launch ==
              CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
static_assert(cuda::function_shared_size ==
              CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
static_assert(cuda::function_registers == CU_FUNC_ATTRIBUTE_NUM_REGS);

static_assert(cuda::stream_non_blocking == CU_STREAM_NON_BLOCKING);
static_assert(cuda::event_default == CU_EVENT_DEFAULT);
static_assert(cuda::event_disable_timing == CU_EVENT_DISABLE_TIMING);
static_assert(cuda::host_alloc_portable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(cuda::capture_mode_thread_local ==
              CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);

static_assert(fuse::NvrtcApi::success == NVRTC_SUCCESS);
static_assert(fuse::NvrtcApi::compilation_failed == NVRTC_ERROR_COMPILATION);
static_assert(fuse::NvrtcApi::builtins_failed ==
              NVRTC_ERROR_BUILTIN_OPERATION_FAILURE);

}  // namespace

TEST_CASE("the compiler has compared every declaration with CUDA's headers") {
  int calls = 0;
#define CUDA_CALL(member, symbol, parameters) ++calls;
#include "fusebook/cuda/cuda_calls.def"
#undef CUDA_CALL
  CHECK(calls == 47);
}

#else

TEST_CASE("CUDA's headers are not installed: nothing to compare with") {
  MESSAGE("skipped: install the CUDA Toolkit, or set CUDA_HOME");
}

#endif
