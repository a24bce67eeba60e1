#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "fusebook/tensor/tensor.h"

namespace fuse {

/// Gradients in memory owned by others, known only by address: see
/// Optimizer::step.
struct GradientAddresses {
  /// One for each of the optimizer's `parameters()`, in that order; null for a
  /// parameter without a gradient. Each gradient has the sizes and strides of
  /// its parameter and is on the same device.
  std::span<const void* const> grads;
  /// The dtype of all gradients; if not given, each has the dtype of its
  /// parameter.
  std::optional<DType> dtype = {};
};

/// Where a step finds the gradients of its parameters: in the parameters, or at
/// addresses supplied by the caller.
class GradientSource {
 public:
  /// The gradients that the parameters hold.
  GradientSource() = default;
  explicit GradientSource(const GradientAddresses& given)
      : given_(true), addresses_(given.grads), dtype_(given.dtype) {}

  /// True if the caller supplied addresses.
  bool given() const { return given_; }
  /// True if both find gradients in the same way.
  bool like(const GradientSource& other) const {
    return given_ == other.given_ && dtype_ == other.dtype_;
  }
  /// True if `params[i]` has a gradient; an undefined tensor has none.
  bool has(const std::vector<Tensor>& params, std::size_t i) const {
    if (given_) return addresses_[i] != nullptr;
    return params[i].defined() && params[i].impl()->grad != nullptr;
  }
  /// The dtype of the gradient of `params[i]`.
  DType dtype(const std::vector<Tensor>& params, std::size_t i) const {
    if (given_) return dtype_.value_or(params[i].dtype());
    return params[i].impl()->grad->dtype;
  }
  void* address(std::size_t i) const {
    return const_cast<void*>(addresses_[i]);  // lists do not track const
  }
  /// The same for `count` of the parameters, starting at `first`.
  GradientSource part(std::size_t first, std::size_t count) const {
    if (!given_) return {};
    return GradientSource({addresses_.subspan(first, count), dtype_});
  }

 private:
  bool given_ = false;
  std::span<const void* const> addresses_;
  std::optional<DType> dtype_;
};

}  // namespace fuse
