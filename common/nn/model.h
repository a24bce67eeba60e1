#pragma once

#include <concepts>
#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include "fusebook/nn/layers.h"
#include "fusebook/nn/module.h"
#include "fusebook/tensor/random.h"
#include "fusebook/tensor/tensor.h"

namespace fuse {

/// A layer that computes `x W^T + b`, like `torch.nn.Linear`.
///
/// Copies of a layer share its parameters, like handles; use `clone` for a
/// separate layer. A moved-from layer throws Error naming what was called.
class Linear {
 public:
  /// Weight of shape [out, in] and bias of shape [out], both drawn uniformly
  /// from -1/sqrt(in) to 1/sqrt(in). Throws Error for sizes below one, and for
  /// a 16-bit dtype: layers compute in float32 or float64.
  Linear(std::int64_t in, std::int64_t out, Generator& generator,
         bool bias = true, DType dtype = DType::float32);

  /// Maps input of shape [in] or [batch, in] to output of shape [out] or
  /// [batch, out]. Throws Error if shape or dtype does not fit.
  Tensor operator()(const Tensor& input) const;

  /// Of shape [out, in].
  const Tensor& weight() const { return self().weight_; }
  /// Undefined if the layer was made without a bias.
  const Tensor& bias() const { return self().bias_; }
  /// Elements per input sample.
  std::int64_t in_features() const { return self().weight_.shape()[1]; }
  /// Elements per output sample.
  std::int64_t out_features() const { return self().weight_.shape()[0]; }
  /// The weight, and the bias if there is one.
  std::vector<Tensor> parameters() const;
  /// "weight", and "bias" if there is one.
  NamedTensors named_parameters() const;
  /// A copy with its own parameters and gradients.
  Linear clone() const;
  /// "Linear(4, 3)".
  std::string name() const;
  /// Why it does not accept an input; empty if it does.
  std::string problem_with(const Tensor& input) const;

 private:
  Linear(Tensor weight, Tensor bias)
      : weight_(std::move(weight)), bias_(std::move(bias)) {}

  const Linear& self(
      std::source_location call = std::source_location::current()) const {
    if (!weight_.defined()) refuse_moved_from(call, "the layer");
    return *this;
  }

  Tensor weight_;
  Tensor bias_;
};

/// A stack of layers, each applied to the output of the one before, like
/// `torch.nn.Sequential`; see Layer for what can be a layer:
///
///     Sequential model({Linear(4, 8, gen), ReLU(), Linear(8, 2, gen)});
///
/// Forward and backward give the same bits for every number of threads, on
/// every CPU of one instruction set; see gemm(). `backward()` adds to existing
/// gradients. A moved-from model has no layers, and returns its input.
class Sequential {
 public:
  /// Throws Error if a Linear does not fit the output of the one before it.
  explicit Sequential(std::vector<Layer> layers);
  /// The same for layers of one kind.
  template <class M>
    requires(!std::same_as<M, Layer>)
  explicit Sequential(const std::vector<M>& layers)
      : Sequential(std::vector<Layer>(layers.begin(), layers.end())) {}

  /// Throws Error naming the layer if the input does not fit it.
  Tensor operator()(const Tensor& input) const;

  /// The layers, in order.
  const std::vector<Layer>& layers() const { return layers_; }
  /// The parameters of every layer, in order.
  std::vector<Tensor> parameters() const;
  /// The same with their names, such as "0.weight": the layer's index and the
  /// name within the layer.
  NamedTensors named_parameters() const;
  /// Removes all gradients or, if `set_to_none` is false, fills them with
  /// zeros.
  void zero_grad(bool set_to_none = true) const;
  /// Tells all layers whether the model is in training, the initial state, or
  /// in use: Dropout is active only in training.
  void train(bool mode = true) const;
  void eval() const { train(false); }  ///< `train(false)`.
  /// A deep copy: equal parameters and gradients in separate storage.
  Sequential clone() const;

 private:
  std::vector<Layer> layers_;
};

/// `layers` bias-free layers of `width` x `width`. Throws Error for counts
/// below one, and right away if the weights cannot fit into memory.
Sequential linear_stack(std::int64_t layers, std::int64_t width,
                        Generator& generator, DType dtype = DType::float32);

}  // namespace fuse
