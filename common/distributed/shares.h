#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fusebook/tensor/tensor.h"

namespace fuse {

/// A part of a parameter that one rank owns: elements in row-major order.
struct Share {
  std::size_t param = 0;   ///< its number, counting through all groups
  std::int64_t begin = 0;  ///< of its elements, the first
  std::int64_t count = 0;  ///< how many elements
  int owner = 0;           ///< the rank

  bool operator==(const Share&) const = default;
};

/// A parameter as far as its shares depend on it.
struct Shareable {
  std::int64_t numel = 0;
  /// Shares begin at multiples of this; 0 for one that stays whole.
  std::int64_t unit = 0;
};

/// Cuts parameters into shares of nearly the same size, in order: the first are
/// those of rank 0. Each rank has at most one share of a parameter, and perhaps
/// none at all.
std::vector<Share> make_shares(const std::vector<Shareable>& params, int ranks);

/// The elements of a share, in the memory of its parameter: the parameter's
/// shape if it is whole, else one dimension.
Tensor view_of(const Share& share, const Tensor& param);

/// Moves the views of a rank's shares, in the order of these, to where their
/// parameters are now.
void move_views(const std::vector<Tensor>& views,
                const std::vector<Share>& shares, int rank,
                const std::vector<Tensor>& params);

}  // namespace fuse
