#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "fusebook/distributed/message_buffer.h"
#include "fusebook/tensor/tensor.h"

namespace fuse {

/// Tensors that travel together from one rank to another. Large ones are messages
/// of their own, which go straight from their memory and to it; small ones share
/// one. Both sides see the same sizes, and so the same messages.
class Parcel {
 public:
  /// Bytes of a tensor that is large: below, a message costs more than a copy.
  static constexpr std::int64_t least_large = 65536;

  /// `memory` is for copies: of small tensors, and of large ones that lie with
  /// gaps, or where MPI does not reach them.
  Parcel(const std::vector<Tensor>& tensors, MessageBuffer& memory);

  /// Copies what has a copy, before it is sent.
  void pack();
  /// Copies it back, where it has arrived.
  void unpack();
  /// The messages.
  const std::vector<std::span<std::byte>>& stretches() const {
    return stretches_;
  }

 private:
  std::vector<std::span<std::byte>> stretches_;
  std::vector<std::pair<Tensor, Tensor>> copies_;  // of the first in the second
};

}  // namespace fuse
