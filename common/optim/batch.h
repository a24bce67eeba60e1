#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "optim/gradient_source.h"
#include "optim/state_store.h"
#include "tensor_list.h"

namespace fuse {

/// Everything that takes part in one step, list by list: tensors of one group
/// and one dtype that have a gradient. An optimizer is given gradients of that
/// dtype, whatever they are stored in.
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
/// together for each dtype (and that of gradients) on each device, or without `foreach` one by one.
std::vector<std::vector<std::size_t>> partition(
    const std::vector<Tensor>& params, bool foreach,
    const GradientSource& gradients = {});

/// The batches of one group, kept from step to step.
class BatchCache {
 public:
  /// What is no longer as it was when the batches were made, the most that
  /// differs.
  enum class Change {
    nothing,  ///< but where the gradients are
    batches,  ///< other parameters have one, or other states are kept
    params,   ///< other parameters
  };

  /// Says what has changed, in a few nanoseconds a parameter. Where it is
  /// nothing, the lists of gradients are those of the gradients now; all other
  /// lists stay as they are.
  Change refresh(const std::vector<Tensor>& params,
                 std::span<const StateSpec> specs, bool foreach,
                 const StateStore& store, const GradientSource& gradients);
  /// Makes the batches for the parameters that have a gradient now, and states
  /// that they miss.
  void rebuild(const std::vector<Tensor>& params,
               std::span<const StateSpec> specs, bool foreach,
               StateStore& store, const GradientSource& gradients);
  std::vector<Batch>& batches() { return batches_; }
  const std::vector<Batch>& batches() const { return batches_; }

 private:
  static constexpr std::uint64_t unfinished = UINT64_MAX;
  using Places = std::vector<std::size_t>;

  bool follow(const GradientSource& gradients);
  bool follow(std::size_t batch, const GradientSource& gradients);
  Batch make_batch(const Places& places, std::span<const StateSpec> specs,
                   const StateStore& store, const GradientSource& gradients);
  std::span<void* const> gather(const Places& places,
                                const GradientSource& gradients);

  std::vector<Tensor> params_;
  Places without_;  // parameters that had no gradient
  std::vector<const char*> names_;
  bool foreach_ = true;
  GradientSource source_;               // how gradients were found
  std::vector<void*> addresses_;        // of one batch
  std::uint64_t version_ = unfinished;  // of the states
  std::vector<Places> places_;          // of each batch's parameters
  std::vector<Batch> batches_;
};

}  // namespace fuse
