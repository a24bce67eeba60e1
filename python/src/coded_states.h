#pragma once

#include <nanobind/nanobind.h>

#include "fusebook/tensor/tensor.h"

namespace fuse::python {

/// True for an array of int8 or uint8: what others see of a state in 8 bits.
bool is_coded(nanobind::handle object);

/// A copy in host memory of a state with this shape, from its bytes as
/// codes_to_dlpack lends them. Their number must fit blocks of some size: of
/// `block_size`, or else of the one that it fits. Throws Error, starting with `what`.
Tensor state_from_codes(nanobind::handle object, const char* what,
                        const Shape& shape, std::int64_t block_size);

}  // namespace fuse::python
