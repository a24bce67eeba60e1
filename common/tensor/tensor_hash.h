#pragma once

#include <string>
#include <vector>

#include "fusebook/tensor/tensor.h"

namespace fuse {

/// A hash of all bits of some tensors, as 16 hexadecimal digits: runs that end
/// with the same parameters print the same.
std::string hash_of_bits(const std::vector<Tensor>& tensors);

}  // namespace fuse
