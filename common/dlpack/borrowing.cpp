// Tensors that other libraries lend.
#include <fmt/core.h>

#include <memory>
#include <string>

#include "fusebook/device/allocator.h"
#include "fusebook/dlpack/dlpack.h"
#include "fusebook/dlpack/dlpack_abi.h"
#include "fusebook/support/error.h"

namespace fuse {
namespace {

std::string text_of(const DLDataType& type) {
  switch (type.code) {
    case kDLInt:
      return fmt::format("int{}", type.bits);
    case kDLUInt:
      return fmt::format("uint{}", type.bits);
    case kDLFloat:
      return fmt::format("float{}", type.bits);
    case kDLBfloat:
      return fmt::format("bfloat{}", type.bits);
    case kDLComplex:
      return fmt::format("complex{}", type.bits);
    case kDLBool:
      return "bool";
    default:
      return fmt::format("number {}", type.code);
  }
}

DType dtype_of(const DLDataType& type) {
  if (type.lanes == 1) {
    if (type.code == kDLFloat && type.bits == 32) return DType::float32;
    if (type.code == kDLFloat && type.bits == 64) return DType::float64;
    if (type.code == kDLFloat && type.bits == 16) return DType::float16;
    if (type.code == kDLBfloat && type.bits == 16) return DType::bfloat16;
    if (type.code == kDLInt && type.bits == 16) return DType::int16;
  }
  throw Error(fmt::format(
      "from_dlpack: the dtype {}{} is not supported; use float32, float64, "
      "float16, bfloat16 or int16",
      text_of(type),
      type.lanes == 1 ? "" : fmt::format(" in {} lanes", type.lanes)));
}

Device device_of(const DLDevice& device) {
  switch (device.device_type) {
    case kDLCPU:
    case kDLCUDAHost:
      return cpu_device;
    case kDLCUDA:
    case kDLCUDAManaged:
      return {Device::Kind::cuda, device.device_id};
    default:
      throw Error(
          fmt::format("from_dlpack: memory of DLPack's device type {} is not "
                      "supported; copy "
                      "it to the CPU or a CUDA GPU",
                      device.device_type));
  }
}

// Gives back what it has, if anything.
template <class Managed>
struct Borrowed {
  Borrowed() = default;
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  ~Borrowed() {
    if (lent != nullptr && lent->deleter != nullptr) lent->deleter(lent);
  }
  Managed* lent = nullptr;
};

template <class Managed>
Tensor take_over(Managed* lent) {
  Tensor tensor = borrow_dlpack(lent->dl_tensor);
  const auto borrowed = std::make_shared<Borrowed<Managed>>();
  tensor.impl()->storage->block = borrowed;
  borrowed->lent = lent;  // nothing throws from here on
  return tensor;
}

template <class Managed>
void check_given(const Managed* lent) {
  if (lent == nullptr) throw Error("from_dlpack: expected a tensor, got null");
}

}  // namespace

Tensor borrow_dlpack(const DLTensor& described) {
  const DType dtype = dtype_of(described.dtype);
  const Device device = device_of(described.device);
  if (described.ndim < 0) {
    throw Error(fmt::format(
        "from_dlpack: the number of dimensions must not be negative, but is {}",
        described.ndim));
  }
  if (described.ndim > 0 && described.shape == nullptr) {
    throw Error(
        fmt::format("from_dlpack: a tensor of {} dimensions has no "
                    "sizes",
                    described.ndim));
  }
  const auto* const sizes = described.shape;
  const auto* const steps = described.strides;
  const Shape shape(sizes, sizes + described.ndim);
  const Shape strides =
      steps == nullptr ? Shape() : Shape(steps, steps + described.ndim);
  // An empty tensor has no address to begin with.
  auto* const data = static_cast<char*>(described.data);
  void* const first = data == nullptr ? data : data + described.byte_offset;
  return Tensor::from_memory(first, shape, strides, dtype, device);
}

Tensor from_dlpack(DLManagedTensorVersioned* lent) {
  check_given(lent);
  if (lent->version.major != DLPACK_MAJOR_VERSION) {
    throw Error(fmt::format(
        "from_dlpack: the tensor comes in version {}.{} of DLPack, and version "
        "{} is known here; ask the other library for that one",
        lent->version.major, lent->version.minor, DLPACK_MAJOR_VERSION));
  }
  if ((lent->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0) {
    throw Error(
        "from_dlpack: the memory may only be read, and a step would write it; "
        "lend a copy");
  }
  return take_over(lent);
}

Tensor from_dlpack(DLManagedTensor* lent) {
  check_given(lent);
  return take_over(lent);
}

}  // namespace fuse
