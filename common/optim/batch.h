#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "optim/state_store.h"
#include "tensor_list.h"

namespace fuse {

/// Everything that takes part in one step, list by list: tensors of one group
/// and one dtype that have a gradient.
struct Batch {
  TensorList params;
  TensorList grads;
  TensorList steps;                ///< float64 step counts, one a parameter
  std::vector<TensorList> states;  ///< in the order of the StateSpecs
  std::vector<const char*> names;  ///< of the states

  /// A state by its name, for optimizers that do not always keep the same ones.
  const TensorList& state(std::string_view name) const;
};

/// The parameters that have a gradient, by their places, as they are updated:
/// together for each dtype on each device, or without `foreach` one by one.
std::vector<std::vector<std::size_t>> partition(
    const std::vector<Tensor>& params, bool foreach);

/// The batches of one group, kept from step to step.
class BatchCache {
 public:
  /// What is no longer as it was when the batches were made, the most that
  /// differs.
  enum class Change {
    nothing,
    gradients,  ///< other tensors are the gradients
    batches,    ///< other parameters have one, or other states are kept
    params,     ///< other parameters
  };

  Change change(const std::vector<Tensor>& params,
                std::span<const StateSpec> specs, bool foreach,
                const StateStore& store) const;
  /// After Change::gradients: new lists for gradients that are other tensors.
  /// All other lists stay as they are.
  void refresh_gradients();
  /// Makes the batches for the parameters that have a gradient now, and states
  /// that they miss.
  void rebuild(const std::vector<Tensor>& params,
               std::span<const StateSpec> specs, bool foreach,
               StateStore& store);
  const std::vector<Batch>& batches() const { return batches_; }

 private:
  using Places = std::vector<std::size_t>;

  TensorList gradients(const Places& places) const;
  Batch make_batch(const Places& places, std::span<const StateSpec> specs,
                   const StateStore& store) const;

  std::vector<Tensor> params_;
  std::vector<Tensor> grads_;  // of the parameters, undefined for none
  std::vector<const char*> names_;
  bool foreach_ = true;
  std::uint64_t version_ = 0;   // of the states
  std::vector<Places> places_;  // of each batch's parameters
  std::vector<Batch> batches_;
};

}  // namespace fuse
