#pragma once

#include <cstdint>
#include <memory>
#include <source_location>
#include <string>

#include "fusebook/nn/functional.h"
#include "fusebook/tensor/random.h"
#include "fusebook/tensor/tensor.h"

namespace fuse {

// Layers without parameters, with the names and arguments of torch.nn;
// functional.h describes what they compute.

/// The maximum of each element and 0.
struct ReLU {
  Tensor operator()(const Tensor& input) const { return relu(input); }
  std::string name() const { return "ReLU()"; }
};

/// The hyperbolic tangent of each element.
struct Tanh {
  Tensor operator()(const Tensor& input) const { return tanh(input); }
  std::string name() const { return "Tanh()"; }
};

/// 1 / (1 + exp(-x)) for each element x.
struct Sigmoid {
  Tensor operator()(const Tensor& input) const { return sigmoid(input); }
  std::string name() const { return "Sigmoid()"; }
};

/// `gelu`, exact or with torch's approximate="tanh".
struct GELU {
  /// See `Gelu`.
  explicit GELU(Gelu approximation = Gelu::exact)
      : approximate(approximation) {}
  Tensor operator()(const Tensor& input) const {
    return gelu(input, approximate);
  }
  std::string name() const {
    return approximate == Gelu::tanh ? "GELU(tanh)" : "GELU()";
  }
  Gelu approximate;
};

/// `softmax` over one dimension.
struct Softmax {
  /// A negative dimension counts from the end.
  explicit Softmax(std::int64_t dimension) : dim(dimension) {}
  Tensor operator()(const Tensor& input) const { return softmax(input, dim); }
  std::string name() const { return "Softmax(" + std::to_string(dim) + ")"; }
  std::int64_t dim;
};

/// `log_softmax` over one dimension.
struct LogSoftmax {
  /// A negative dimension counts from the end.
  explicit LogSoftmax(std::int64_t dimension) : dim(dimension) {}
  Tensor operator()(const Tensor& input) const {
    return log_softmax(input, dim);
  }
  std::string name() const { return "LogSoftmax(" + std::to_string(dim) + ")"; }
  std::int64_t dim;
};

/// [batch, ...] to [batch, rest].
struct Flatten {
  Tensor operator()(const Tensor& input) const;
  std::string name() const { return "Flatten()"; }
};

/// `dropout` in training, otherwise the identity. Every call in training uses
/// the next offset, starting at 0, so equal seeds give the same sequence of
/// masks, and a run resumed with set_offset() continues with the same masks.
/// Copies share the offset and the mode; `clone` copies them. A moved-from
/// layer throws Error naming what was called.
class Dropout {
 public:
  /// Takes its seed from the generator. Throws Error unless the probability is
  /// from 0 to 1.
  Dropout(double p, Generator& generator);

  /// In training every element is 0 with probability p; otherwise returns the
  /// input itself.
  Tensor operator()(const Tensor& input) const;
  /// Switches dropout on or off, for all copies.
  void train(bool mode = true) const { self().training = mode; }
  void eval() const { self().training = false; }  ///< `train(false)`.

  /// The seed that, with the offset, determines the masks.
  std::uint64_t seed() const { return self().seed; }
  /// Number of calls in training so far.
  std::uint64_t offset() const { return self().offset; }
  /// Continues with the masks that follow this offset.
  void set_offset(std::uint64_t offset) const { self().offset = offset; }
  Dropout clone() const;  ///< A copy with its own offset and mode.
  std::string name() const;

 private:
  struct State {
    double p;
    std::uint64_t seed;
    std::uint64_t offset = 0;
    bool training = true;
  };

  explicit Dropout(const State& state)
      : state_(std::make_shared<State>(state)) {}

  State& self(
      std::source_location call = std::source_location::current()) const {
    if (state_ == nullptr) refuse_moved_from(call, "the layer");
    return *state_;
  }

  std::shared_ptr<State> state_;
};

}  // namespace fuse
