#pragma once

#include <any>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fusebook/optim_base/gradient_source.h"
#include "fusebook/optim_base/state_store.h"
#include "fusebook/tensor/tensor_list.h"

namespace fuse {

/// Everything that takes part in one step, list by list: tensors of one dtype
/// that have a gradient, from one group or from several that differ only in
/// their numbers.
struct Batch {
  TensorList params;               ///< Parameters that have a gradient.
  TensorList grads;                ///< Their gradients.
  TensorList steps;                ///< float64 step counts, one per parameter
  std::vector<TensorList> states;  ///< in the order of the StateSpecs
  std::vector<std::string_view> names;  ///< names of the states
  /// The parameters in float32, if they have 16 bits and masters.
  TensorList masters;
  /// The lower halves of the parameters, if they have split masters.
  TensorList low_halves;
  /// Keys of their random bits, if parameters are rounded stochastically.
  TensorList rounding_keys;
  /// Where their elements stand in these bits.
  TensorList positions;

  /// A state by its name, for optimizers whose set of states varies.
  const TensorList& state(std::string_view name) const;

  /// What an update makes of the shapes of a batch and of options alone, under a
  /// name that tells these options: made once, and the same at the next step. Keep no
  /// gradients in it, and of the states only averages of rows and columns: others may
  /// be float32 copies that end with the step.
  template <class Make>
  auto& keep(const std::string& name, Make make) const {
    std::any& place = kept_place(name);
    if (!place.has_value()) place = make();
    return std::any_cast<decltype(make())&>(place);
  }
  /// What `keep` keeps; all copies of a batch share it.
  std::shared_ptr<std::map<std::string, std::any>> kept =
      std::make_shared<std::map<std::string, std::any>>();

 private:
  std::any& kept_place(const std::string& name) const;
};

/// Gradients at addresses the caller supplies, one per parameter.
struct GivenGradients {
  std::span<void* const> addresses;
  DType dtype;
};

/// Makes the batch of these parameters, which must have states, with their own
/// gradients or with the ones given.
Batch make_batch(std::vector<Tensor> params, std::span<const StateSpec> specs,
                 const StateStore& store,
                 const std::optional<GivenGradients>& gradients);

}  // namespace fuse
