#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tensor.h"

namespace fuse {

/// Gradients in memory of others, of which only the addresses are known: see
/// Optimizer::step.
struct GradientAddresses {
  /// One for each of the optimizer's `parameters()`, in that order; null for a
  /// parameter that has none. The gradient has the parameter's dtype, sizes and
  /// strides, and lies on its device.
  std::span<const void* const> grads;
};

/// Where one step finds the gradients of some parameters: with them, or at
/// addresses of a caller.
class GradientSource {
 public:
  /// With the parameters.
  GradientSource() = default;
  /// One address a parameter.
  explicit GradientSource(std::span<const void* const> addresses)
      : given_(true), addresses_(addresses) {}

  /// True for addresses.
  bool given() const { return given_; }
  /// Whether `params[i]` has a gradient; an undefined tensor has none.
  bool has(const std::vector<Tensor>& params, std::size_t i) const {
    if (given_) return addresses_[i] != nullptr;
    return params[i].defined() && params[i].impl()->grad != nullptr;
  }
  void* address(std::size_t i) const {
    return const_cast<void*>(addresses_[i]);  // which lists do not distinguish
  }
  /// That of `count` of the parameters, from `first` on.
  GradientSource part(std::size_t first, std::size_t count) const {
    return given_ ? GradientSource(addresses_.subspan(first, count))
                  : GradientSource();
  }

 private:
  bool given_ = false;
  std::span<const void* const> addresses_;
};

}  // namespace fuse
