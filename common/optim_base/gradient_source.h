#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "fusebook/tensor/tensor.h"

namespace fuse {

/// Gradients in memory of others, of which only the addresses are known: see
/// Optimizer::step.
struct GradientAddresses {
  /// One for each of the optimizer's `parameters()`, in that order; null for a
  /// parameter that has none. The gradient has the parameter's sizes and strides
  /// and lies on its device.
  std::span<const void* const> grads;
  /// Of all gradients; without it each has the dtype of its parameter.
  std::optional<DType> dtype = {};
};

/// Where one step finds the gradients of some parameters: with them, or at
/// addresses of a caller.
class GradientSource {
 public:
  /// With the parameters.
  GradientSource() = default;
  explicit GradientSource(const GradientAddresses& given)
      : given_(true), addresses_(given.grads), dtype_(given.dtype) {}

  /// True for addresses.
  bool given() const { return given_; }
  /// True when both find gradients in the same way.
  bool like(const GradientSource& other) const {
    return given_ == other.given_ && dtype_ == other.dtype_;
  }
  /// Whether `params[i]` has a gradient; an undefined tensor has none.
  bool has(const std::vector<Tensor>& params, std::size_t i) const {
    if (given_) return addresses_[i] != nullptr;
    return params[i].defined() && params[i].impl()->grad != nullptr;
  }
  /// The dtype of the gradient that `params[i]` has.
  DType dtype(const std::vector<Tensor>& params, std::size_t i) const {
    if (given_) return dtype_.value_or(params[i].dtype());
    return params[i].impl()->grad->dtype;
  }
  void* address(std::size_t i) const {
    return const_cast<void*>(addresses_[i]);  // which lists do not distinguish
  }
  /// That of `count` of the parameters, from `first` on.
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
