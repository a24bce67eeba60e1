#pragma once

// What DLPack 1.3 lays down, without its comments: the structs by which
// libraries lend each other tensors (https://dmlc.github.io/dlpack). For .cpp
// files: a program may include a dlpack.h of its own, which then counts.
//
// Copyright (c) 2017 by Contributors. Licensed under the Apache License, Version
// 2.0: https://www.apache.org/licenses/LICENSE-2.0

#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_  // NOLINT(readability-identifier-naming)

#include <cstdint>

extern "C" {

struct DLPackVersion {
  std::uint32_t major;
  std::uint32_t minor;
};

enum DLDeviceType : std::int32_t {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,
  kDLCUDAManaged = 13,
};

struct DLDevice {
  std::int32_t device_type;  // a DLDeviceType
  std::int32_t device_id;
};

enum DLDataTypeCode : std::uint8_t {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6,
};

struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor* self);
};

struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  std::uint64_t flags;
  DLTensor dl_tensor;
};

constexpr std::uint32_t DLPACK_MAJOR_VERSION = 1;
constexpr std::uint32_t DLPACK_MINOR_VERSION = 3;
constexpr std::uint64_t DLPACK_FLAG_BITMASK_READ_ONLY = 1;
constexpr std::uint64_t DLPACK_FLAG_BITMASK_IS_COPIED = 2;

// The table of functions through which a library of Python lends its tensors
// without an object for each.
struct DLPackExchangeAPIHeader {
  DLPackVersion version;
  struct DLPackExchangeAPIHeader* prev_api;
};

struct DLPackExchangeAPI {
  DLPackExchangeAPIHeader header;
  int (*managed_tensor_allocator)(DLTensor* prototype,
                                  DLManagedTensorVersioned** out,
                                  void* error_ctx,
                                  void (*set_error)(void* error_ctx,
                                                    const char* kind,
                                                    const char* message));
  int (*managed_tensor_from_py_object_no_sync)(void* py_object,
                                               DLManagedTensorVersioned** out);
  int (*managed_tensor_to_py_object_no_sync)(DLManagedTensorVersioned* tensor,
                                             void** out_py_object);
  int (*dltensor_from_py_object_no_sync)(void* py_object, DLTensor* out);
  int (*current_work_stream)(DLDeviceType device_type, std::int32_t device_id,
                             void** out_current_stream);
};

}  // extern "C"

#endif
