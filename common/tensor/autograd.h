#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "fusebook/tensor/tensor.h"

namespace fuse {

/// The gradients of the inputs of an operation, in their order; an undefined one
/// is zero, or not needed.
using Grads = std::vector<Tensor>;

/// How one tensor was computed: a node of the graph that `backward()` walks, from
/// the last one made to the first.
class GradFn {
 public:
  /// Gradients of the inputs from that of the output. What it keeps of tensors
  /// must be detached: a node that kept its own output would never go. An empty
  /// one is an Error.
  using Backward = std::function<Grads(const Tensor& grad_output)>;

  /// A node that hands what `backward` computes on to the inputs.
  GradFn(const std::vector<Tensor>& inputs, Backward backward);
  GradFn(const GradFn&) = delete;
  GradFn& operator=(const GradFn&) = delete;
  ~GradFn();

  /// Where the gradient of an input goes: on, or into that tensor, or nowhere.
  struct Edge {
    explicit Edge(const Tensor& input);
    std::shared_ptr<GradFn> grad_fn;
    std::shared_ptr<TensorImpl> leaf;
  };

 private:
  friend class BackwardPass;

  std::vector<Edge> edges_;
  Backward backward_;
  std::uint64_t number_;  // larger than those of all inputs
};

/// True when a gradient goes to or through this tensor, and ways back are being
/// kept; false for an undefined one.
bool wants_grad(const Tensor& tensor);

/// The output of an operation, with its way back where one of the inputs wants a
/// gradient. An input may be undefined. An operation of one's own becomes
/// differentiable by it. Throws Error for an undefined output.
Tensor with_grad(const Tensor& output, const std::vector<Tensor>& inputs,
                 GradFn::Backward backward);

/// The same for a copy of `input` on any device, in any dtype.
Tensor passing_grad(const Tensor& copy, const Tensor& input);

/// Leads the gradient of a tensor back to all that led to it; an undefined
/// gradient is zero. Throws Error for an undefined tensor.
void run_backward(const Tensor& from, const Tensor& grad);

/// As `torch::NoGradGuard`: as long as it lives, what its thread computes keeps
/// no way back, which saves the memory of it.
class NoGradGuard {
 public:
  /// Begins it.
  NoGradGuard();
  NoGradGuard(const NoGradGuard&) = delete;
  NoGradGuard& operator=(const NoGradGuard&) = delete;
  ~NoGradGuard();

 private:
  bool before_;
};

}  // namespace fuse
