#pragma once

// The part of CUDA's driver interface that the library uses, declared here so
// that it builds the same with and without CUDA's headers, and one program
// supports drivers for CUDA 12 and 13. A test compares every line with cuda.h.
// Source: CUDA Driver API reference, docs.nvidia.com/cuda/cuda-driver-api.

namespace fuse::cuda {

/// CUresult, CUdevice and the other enumerations are passed as int.
using Result = int;
using Device = int;
/// CUdeviceptr: an address in the memory of a device.
using Address = unsigned long long;

// Opaque handles.
using Context = struct ContextHandle*;
using Stream = struct StreamHandle*;
using Event = struct EventHandle*;
using Module = struct ModuleHandle*;
using Function = struct FunctionHandle*;
using Graph = struct GraphHandle*;
using GraphExec = struct GraphExecHandle*;

// CUresult.
constexpr Result success = 0;
constexpr Result invalid_value = 1;
constexpr Result out_of_memory = 2;
constexpr Result not_initialized = 3;
constexpr Result deinitialized = 4;
constexpr Result stub_library = 34;
constexpr Result device_unavailable = 46;
constexpr Result no_device = 100;
constexpr Result invalid_device = 101;
constexpr Result invalid_image = 200;
constexpr Result no_binary_for_gpu = 209;
constexpr Result ecc_uncorrectable = 214;
constexpr Result invalid_ptx = 218;
constexpr Result nvlink_uncorrectable = 220;
constexpr Result jit_compiler_not_found = 221;
constexpr Result unsupported_ptx_version = 222;
constexpr Result contained = 226;
constexpr Result not_found = 500;
constexpr Result not_ready = 600;
constexpr Result illegal_address = 700;
constexpr Result launch_out_of_resources = 701;
constexpr Result launch_timeout = 702;
constexpr Result context_is_destroyed = 709;
constexpr Result assert_failed = 710;
constexpr Result hardware_stack_error = 714;
constexpr Result illegal_instruction = 715;
constexpr Result misaligned_address = 716;
constexpr Result invalid_address_space = 717;
constexpr Result invalid_pc = 718;
constexpr Result launch_failed = 719;
constexpr Result cooperative_launch_too_large = 720;
constexpr Result tensor_memory_leak = 721;
constexpr Result not_supported = 801;
constexpr Result system_driver_mismatch = 803;
constexpr Result compat_not_supported = 804;
constexpr Result capture_unsupported = 900;
constexpr Result capture_invalidated = 901;
constexpr Result external_device = 911;

// CUdevice_attribute.
constexpr int attribute_max_threads_per_block = 1;
constexpr int attribute_multiprocessor_count = 16;
constexpr int attribute_l2_cache_size = 38;
constexpr int attribute_capability_major = 75;
constexpr int attribute_capability_minor = 76;
constexpr int attribute_cooperative_launch = 95;

// CUfunction_attribute.
constexpr int function_shared_size = 1;
constexpr int function_registers = 4;

// Flags.
constexpr unsigned stream_non_blocking = 1;
constexpr unsigned event_default = 0;
constexpr unsigned event_disable_timing = 2;
constexpr unsigned host_alloc_portable = 1;
constexpr int capture_mode_thread_local = 1;

/// The oldest supported driver, in the format of cuDriverGetVersion: CUDA 12.0.
constexpr int oldest_driver = 12000;

}  // namespace fuse::cuda
