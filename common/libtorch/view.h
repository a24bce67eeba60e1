#pragma once

#include <ATen/ATen.h>
#include <c10/core/Storage.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <memory>
#include <string>

#include "fusebook/ops/dtype.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/tensor.h"

namespace fuse::libtorch {
namespace detail {

/// Throws Error, with a message that starts with `what`.
template <class... Words>
[[noreturn]] void refuse(const std::string& what, const Words&... words) {
  throw Error(c10::str(what, ": ", words...));
}

/// The dtype of a tensor. Throws Error for one that has no counterpart.
inline DType dtype_of(const std::string& what, const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return DType::float32;
    case at::kDouble:
      return DType::float64;
    case at::kHalf:
      return DType::float16;
    case at::kBFloat16:
      return DType::bfloat16;
    default:
      refuse(what, "elements of the type ", tensor.scalar_type(),
             " are not supported; use float, double, half or bfloat16");
  }
}

/// The same in the other direction.
inline at::ScalarType scalar_type_of(const std::string& what, DType dtype) {
  switch (dtype) {
    case DType::float32:
      return at::kFloat;
    case DType::float64:
      return at::kDouble;
    case DType::float16:
      return at::kHalf;
    case DType::bfloat16:
      return at::kBFloat16;
    case DType::int16:
      return at::kShort;
    default:
      refuse(what, "elements of the type ", name_of(dtype),
             " are not supported; LibTorch has no such type");
  }
}

/// Throws Error unless the elements lie in memory as sizes and strides say.
inline void check_plain(const std::string& what, const at::Tensor& tensor) {
  if (!tensor.defined()) refuse(what, "it is undefined");
  if (!tensor.device().is_cpu()) {
    refuse(what, "it is on ", tensor.device(),
           "; only tensors in host memory are supported: move it to the CPU");
  }
  if (tensor.layout() != at::kStrided) {
    refuse(what, "its layout is ", tensor.layout(),
           "; make it dense with to_dense()");
  }
  if (tensor.is_quantized() || !tensor.unsafeGetTensorImpl()->has_storage()) {
    refuse(what, "it has no plain elements in memory; copy it with clone()");
  }
  if (tensor.is_neg() || tensor.is_conj()) {
    refuse(what, "its elements stand for others; call resolve_neg()");
  }
}

/// Throws Error if the storage ends before the elements do: somebody has resized
/// or freed it.
inline void check_storage(const std::string& what, const at::Tensor& tensor) {
  if (tensor.numel() == 0) return;
  std::int64_t last = tensor.storage_offset();
  for (std::int64_t d = 0; d < tensor.dim(); ++d) {
    last += (tensor.size(d) - 1) * tensor.stride(d);
  }
  const auto bytes = std::int64_t(tensor.storage().nbytes());
  if ((last + 1) * std::int64_t(tensor.element_size()) <= bytes) return;
  refuse(what, "its storage has ", bytes,
         " bytes, too few for its elements; has it been resized or freed?");
}

/// A tensor over the elements of `tensor`; messages start with `what`.
inline Tensor view_of(const std::string& what, const at::Tensor& tensor) {
  check_plain(what, tensor);
  const DType dtype = dtype_of(what, tensor);
  check_storage(what, tensor);
  try {
    return Tensor::from_memory(
        tensor.data_ptr(), tensor.sizes().vec(), tensor.strides().vec(), dtype,
        cpu_device, std::make_shared<c10::Storage>(tensor.storage()));
  } catch (const Error& error) {
    refuse(what, error.what());
  }
}

}  // namespace detail

/// A tensor over the elements of one of LibTorch, without a copy; it keeps their
/// memory. Gradients do not flow through it, and LibTorch does not notice what is
/// written. Throws Error for anything but a dense tensor of float, double, half or
/// bfloat16 in host memory.
inline Tensor view(const at::Tensor& tensor) {
  return detail::view_of("view", tensor);
}

/// The same in the other direction. Pending work on the tensor runs first. Throws
/// Error if it is undefined, not in host memory, or of a type that LibTorch does not
/// have, as states in 8 bits are.
inline at::Tensor view(const Tensor& tensor) {
  if (!tensor.device().is_cpu()) {
    throw Error("view: the tensor is not in host memory; copy it to the CPU");
  }
  return at::from_blob(
      tensor.address(true), tensor.shape(), tensor.strides(),
      [tensor](void*) {},
      at::TensorOptions(detail::scalar_type_of("view", tensor.dtype())));
}

}  // namespace fuse::libtorch
