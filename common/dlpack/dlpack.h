#pragma once

#include "fusebook/tensor/tensor.h"

// As in dlpack.h, version 1, which this header does not need.
struct DLTensor;
struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace fuse {

// DLPack is how libraries lend each other tensors without a copy.

/// Lends a tensor to another library: its memory lives until that library calls
/// the `deleter`, on any thread. Pending work on the tensor is issued first; on a GPU,
/// `run_before` lets the borrower's stream wait for it. Throws Error, as torch does, if
/// the tensor requires a gradient (lend its `detach()`), and for a device that DLPack
/// does not know.
DLManagedTensorVersioned* to_dlpack(const Tensor& tensor);
/// The same for libraries that do not know versions yet.
DLManagedTensor* to_dlpack_unversioned(const Tensor& tensor);
/// The same, but a tensor in 8 bits is lent as its bytes, in one dimension, since
/// others have no type for it: for each block, its scale as a float32, then its codes.
/// They are int8 where codes have a sign, otherwise uint8.
DLManagedTensorVersioned* codes_to_dlpack(const Tensor& tensor);
/// The same for libraries that do not know versions yet.
DLManagedTensor* codes_to_dlpack_unversioned(const Tensor& tensor);

/// A tensor over memory that another library lends, without a copy. Takes
/// `lent` over and calls its `deleter` when the last tensor over the memory is
/// gone. Throws Error for memory that may only be read, another major version
/// than 1, a dtype other than float32, float64, float16, bfloat16 and int16, a
/// device that is not here, and for whatever `Tensor::from_memory` refuses; then `lent`
/// is still the caller's.
Tensor from_dlpack(DLManagedTensorVersioned* lent);
/// The same for libraries that do not know versions yet.
Tensor from_dlpack(DLManagedTensor* lent);

/// A tensor over memory that another library describes and the caller keeps
/// alive. Throws Error like `from_dlpack`.
Tensor borrow_dlpack(const DLTensor& described);

}  // namespace fuse
