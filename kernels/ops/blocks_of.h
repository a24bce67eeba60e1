#pragma once

#include <cstdint>

#include "fusebook/ops/dtype.h"

namespace fuse {

/// Elements [first, first + n) of a tensor in blocks, as floats.
void decode_blocks(DType dtype, const void* from, std::int64_t first,
                   std::int64_t n, float* to);
/// The other way round: `first` is the first element of a block, and the last of
/// the n floats is the last of one, or of the tensor.
void encode_blocks(DType dtype, const float* from, std::int64_t n, void* to,
                   std::int64_t first);

}  // namespace fuse
