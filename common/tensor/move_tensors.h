#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fusebook/tensor/tensor.h"

namespace fuse {

/// A tensor and the one whose memory it is to have.
struct Move {
  Tensor tensor;  ///< It is moved.
  Tensor to;      ///< Where its memory is to be, shared with this one.
};

/// `Tensor::set_data` for many tensors, in one pass over all lists. Throws Error,
/// with a message that starts with `call`, before anything has moved.
void move_tensors(std::span<const Move> moves, const char* call);

/// How many times tensors were moved in this process; for those who keep
/// addresses from step to step.
std::uint64_t moves_so_far();

/// Throws Error, with a message that starts with `call`, if two of them share memory.
void check_apart(const std::vector<Tensor>& params, const char* call);

/// Moves parameters into one new buffer, one behind the other in row-major
/// order, and returns it: a 1-d tensor, of which they are parts from now on. What
/// is done to the buffer (a sum over ranks, a copy, a clamp) is done to all of
/// them. Throws Error, and moves nothing, if one is undefined, if their dtypes or
/// devices differ, or if two share memory. An empty list gives an empty buffer.
Tensor flatten_(const std::vector<Tensor>& params);

}  // namespace fuse
