#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "random.h"
#include "tensor.h"

namespace fuse {

/// A layer that computes `x W^T + b`, like `torch.nn.Linear`.
///
/// Copies of a layer share their parameters, as handles do; `clone` does not.
class Linear {
 public:
  /// Weight of shape [out, in] and bias of shape [out], both drawn evenly from
  /// -1/sqrt(in) to 1/sqrt(in). Throws Error for sizes below one, and for a
  /// 16-bit dtype: layers compute in float32 or float64.
  Linear(std::int64_t in, std::int64_t out, Generator& generator,
         bool bias = true, DType dtype = DType::float32);

  /// Input of shape [in] or [batch, in] to output of shape [out] or
  /// [batch, out]. Throws Error when shape or dtype do not fit.
  Tensor operator()(const Tensor& input) const;

  const Tensor& weight() const { return weight_; }
  /// Undefined when the layer was made without one.
  const Tensor& bias() const { return bias_; }
  std::int64_t in_features() const { return weight_.shape()[1]; }
  std::int64_t out_features() const { return weight_.shape()[0]; }
  std::vector<Tensor> parameters() const;
  /// A copy with parameters and gradients of its own.
  Linear clone() const;

 private:
  Linear(Tensor weight, Tensor bias)
      : weight_(std::move(weight)), bias_(std::move(bias)) {}

  Tensor weight_;
  Tensor bias_;
};

/// A stack of layers, each fed with the output of the one before it, like
/// `torch.nn.Sequential`.
///
/// Forward and backward give the same bits for every number of threads, on every
/// CPU of one instruction set; see gemm(). `backward()` adds to gradients that are
/// already there.
class Sequential {
 public:
  /// Throws Error when a layer does not take what the one before it gives.
  explicit Sequential(std::vector<Linear> layers);

  /// Input of shape [in] or [batch, in]. Throws Error when it does not fit.
  Tensor operator()(const Tensor& input) const;

  const std::vector<Linear>& layers() const { return layers_; }
  /// Weight and bias of every layer, in order.
  std::vector<Tensor> parameters() const;
  /// Removes all gradients, or with `set_to_none` false fills them with zeros.
  void zero_grad(bool set_to_none = true) const;
  /// A true copy: equal parameters and gradients in storage of its own.
  Sequential clone() const;

 private:
  std::vector<Linear> layers_;
};

/// `layers` bias-free layers of `width` x `width`. Throws Error for counts
/// below one, and at once when the weights cannot fit into memory.
Sequential linear_stack(std::int64_t layers, std::int64_t width,
                        Generator& generator, DType dtype = DType::float32);

}  // namespace fuse
