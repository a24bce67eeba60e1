#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fusebook/optim_base/gradient_source.h"
#include "fusebook/optim_base/state_store.h"
#include "fusebook/tensor/tensor_list.h"

namespace fuse {

/// Everything that takes part in one step, list by list: tensors of one dtype
/// that have a gradient, of one group or of several that differ in numbers alone.
struct Batch {
  TensorList params;               ///< Parameters that have a gradient.
  TensorList grads;                ///< Their gradients.
  TensorList steps;                ///< float64 step counts, one a parameter
  std::vector<TensorList> states;  ///< in the order of the StateSpecs
  std::vector<const char*> names;  ///< of the states

  /// A state by its name, for optimizers that do not always keep the same ones.
  const TensorList& state(std::string_view name) const;
};

/// Gradients at addresses of a caller, one a parameter.
struct GivenGradients {
  std::span<void* const> addresses;
  DType dtype;
};

/// The batch of these parameters, which have states, with the gradients that they
/// have, or with those that are given.
Batch make_batch(std::vector<Tensor> params, std::span<const StateSpec> specs,
                 const StateStore& store,
                 const std::optional<GivenGradients>& gradients);

}  // namespace fuse
