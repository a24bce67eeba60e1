#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "fusebook/tensor/tensor_list.h"

namespace fuse {

// The lists of gradients that optimizers of this thread keep from step to step.
// Whoever works on gradients of the same parameters takes these lists: then
// nothing is made anew in each step, and what is recorded for both is one launch,
// whatever the order in which the optimizer has the parameters.

/// Lists of one dtype each, in which tensors keep their order.
std::vector<TensorList> lists_by_dtype(const std::vector<Tensor>& tensors,
                                       const char* label);

/// Keeps lists of gradients from its first step on.
class GradientKeeper {
 public:
  virtual ~GradientKeeper() = default;
  /// The parameters of each list of the next step; none if these are the lists
  /// of the last one.
  virtual std::vector<std::vector<Tensor>> lists_to_come() const = 0;
};

/// Makes a keeper known on this thread, as long as it lives.
void announce(const std::shared_ptr<const GradientKeeper>& keeper);

/// Makes a list known, as long as it lives.
void keep_gradients(const std::shared_ptr<ListImpl>& list);

/// The list of the gradients of these parameters, those without one left out, in
/// this order; brought up to date in a few nanoseconds per tensor. Nothing if
/// nobody keeps it.
std::optional<TensorList> kept_gradients(const std::vector<Tensor>& params);

/// The gradients of these parameters in any order: lists that are kept or that
/// the next step of a keeper makes, and in `others` the parameters that are in
/// none of them and have a gradient.
std::vector<TensorList> kept_parts(const std::vector<Tensor>& params,
                                   std::vector<Tensor>& others);

/// How many lists were made known on this thread so far, those that are gone
/// included.
std::uint64_t times_kept();

/// The list of parameters, from this one on, whose gradients are kept; or null.
std::shared_ptr<ListImpl> kept_params(const Tensor& first);

/// Lists that hold these parameters, in any order: those whose gradients are
/// kept, and others, one for each dtype.
std::vector<TensorList> lists_of_params(const std::vector<Tensor>& params);

}  // namespace fuse
