#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "fusebook/tensor/tensor.h"

namespace fuse {

/// The gradients of the inputs of an operation, in order; an undefined one is
/// zero, or not needed.
using Grads = std::vector<Tensor>;

/// How one tensor was computed: a node of the graph that `backward()` walks,
/// from the latest node to the first.
class GradFn {
 public:
  /// Computes gradients of the inputs from that of the output. Tensors it
  /// captures must be detached: a node that kept its own output would never be
  /// freed. An empty function is an Error.
  using Backward = std::function<Grads(const Tensor& grad_output)>;

  /// A node that passes the results of `backward` on to the inputs.
  GradFn(const std::vector<Tensor>& inputs, Backward backward);
  GradFn(const GradFn&) = delete;
  GradFn& operator=(const GradFn&) = delete;
  ~GradFn();

  /// Where the gradient of an input goes: to another node, into a tensor, or
  /// nowhere.
  struct Edge {
    explicit Edge(const Tensor& input);
    std::shared_ptr<GradFn> grad_fn;
    std::shared_ptr<TensorImpl> leaf;
  };

 private:
  friend class BackwardPass;

  std::vector<Edge> edges_;
  Backward backward_;
  std::uint64_t number_;  // greater than those of all inputs
};

/// True if this tensor, or one it was computed from, gets a gradient and
/// recording is enabled; false for an undefined tensor.
bool wants_grad(const Tensor& tensor);

/// The output of an operation, recorded in the graph if an input wants a
/// gradient. Inputs may be undefined. Use it to make your own operation
/// differentiable. Throws Error for an undefined output.
Tensor with_grad(const Tensor& output, const std::vector<Tensor>& inputs,
                 GradFn::Backward backward);

/// The same for a copy of `input`, on any device and in any dtype.
Tensor passing_grad(const Tensor& copy, const Tensor& input);

/// Propagates the gradient of a tensor back to everything it was computed from;
/// an undefined gradient is zero. Throws Error for an undefined tensor.
void run_backward(const Tensor& from, const Tensor& grad);

/// Like `torch::NoGradGuard`: while it lives, computations of its thread are
/// not recorded in the graph, which saves memory.
class NoGradGuard {
 public:
  /// Disables recording until destroyed.
  NoGradGuard();
  NoGradGuard(const NoGradGuard&) = delete;
  NoGradGuard& operator=(const NoGradGuard&) = delete;
  ~NoGradGuard();

 private:
  bool before_;
};

}  // namespace fuse
