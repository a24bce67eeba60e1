// Tensors that other libraries borrow.
#include <fmt/core.h>

#include <memory>

#include "fusebook/dlpack/dlpack.h"
#include "fusebook/dlpack/dlpack_abi.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/tensor_layout.h"

namespace fuse {
namespace {

// What lives as long as the other library has the tensor.
template <class Managed>
struct Loan {
  Tensor tensor;
  Shape shape;
  Shape strides;
  Managed managed = {};
};

DLDevice device_of(const Device& device) {
  if (device.kind == Device::Kind::cpu) return {kDLCPU, 0};
  if (device.kind == Device::Kind::cuda) return {kDLCUDA, device.index};
  throw Error(fmt::format(
      "to_dlpack: DLPack does not know the device {}; lend a copy, cpu()",
      to_string(device)));
}

DLDataType type_of(DType dtype) {
  if (in_blocks(dtype)) {
    return {std::uint8_t(has_sign(dtype) ? kDLInt : kDLUInt), 8, 1};
  }
  const int code = dtype == DType::bfloat16 ? kDLBfloat
                   : dtype == DType::int16  ? kDLInt
                                            : kDLFloat;
  return {std::uint8_t(code), std::uint8_t(8 * size_of(dtype)), 1};
}

template <class Managed>
Managed* lend(const Tensor& tensor) {
  if (tensor.requires_grad()) {
    throw Error(
        "to_dlpack: the tensor requires a gradient, which another library "
        "would not pass on; lend its detach()");
  }
  auto loan = std::make_unique<Loan<Managed>>();
  loan->tensor = tensor;
  loan->shape = tensor.shape();
  loan->strides = tensor.strides();
  if (in_blocks(tensor.dtype())) {
    loan->shape = {std::int64_t(tensor.nbytes())};
    loan->strides = {1};
  }
  DLTensor& described = loan->managed.dl_tensor;
  described.device = device_of(tensor.device());
  described.dtype = type_of(tensor.dtype());
  described.data = tensor.address(true);
  described.ndim = int(loan->shape.size());
  described.shape = loan->shape.data();
  described.strides = loan->strides.data();
  loan->managed.manager_ctx = loan.get();
  loan->managed.deleter = [](Managed* managed) {
    delete static_cast<Loan<Managed>*>(managed->manager_ctx);
  };
  return &loan.release()->managed;
}

}  // namespace

DLManagedTensorVersioned* to_dlpack(const Tensor& tensor) {
  check_defined(tensor);
  check_numbers("to_dlpack", tensor.dtype());
  return codes_to_dlpack(tensor);
}

DLManagedTensorVersioned* codes_to_dlpack(const Tensor& tensor) {
  check_defined(tensor);
  auto* const lent = lend<DLManagedTensorVersioned>(tensor);
  lent->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  return lent;
}

DLManagedTensor* to_dlpack_unversioned(const Tensor& tensor) {
  check_defined(tensor);
  check_numbers("to_dlpack", tensor.dtype());
  return codes_to_dlpack_unversioned(tensor);
}

DLManagedTensor* codes_to_dlpack_unversioned(const Tensor& tensor) {
  check_defined(tensor);
  return lend<DLManagedTensor>(tensor);
}

}  // namespace fuse
