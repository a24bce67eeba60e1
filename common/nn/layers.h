#pragma once

#include <cstdint>
#include <memory>
#include <source_location>
#include <string>

#include "fusebook/nn/functional.h"
#include "fusebook/tensor/random.h"
#include "fusebook/tensor/tensor.h"

namespace fuse {

// Layers without parameters, with the names and arguments of torch.nn; what they
// compute is said in functional.h.

/// The larger of an element and 0.
struct ReLU {
  Tensor operator()(const Tensor& input) const { return relu(input); }
  std::string name() const { return "ReLU()"; }
};

/// The hyperbolic tangent of each element.
struct Tanh {
  Tensor operator()(const Tensor& input) const { return tanh(input); }
  std::string name() const { return "Tanh()"; }
};

/// 1 / (1 + exp(-x)) of each element x.
struct Sigmoid {
  Tensor operator()(const Tensor& input) const { return sigmoid(input); }
  std::string name() const { return "Sigmoid()"; }
};

/// `gelu`, exact or by torch's approximate="tanh".
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

/// `dropout` while training, else nothing. Every call while training is at an
/// offset of its own, beginning with 0, so equal seeds give equal masks in the
/// same order, and a run that goes on after set_offset() goes on with the same
/// masks. Copies share the offset and the mode; `clone` copies them. One that was
/// moved from throws Error, which names what was called.
class Dropout {
 public:
  /// Takes its seed from the generator. Throws Error for a probability outside
  /// of 0 to 1.
  Dropout(double p, Generator& generator);

  /// In training every element is 0 with probability p; else the input itself.
  Tensor operator()(const Tensor& input) const;
  /// Switches dropping on or off, for all copies.
  void train(bool mode = true) const { self().training = mode; }
  void eval() const { self().training = false; }  ///< `train(false)`.

  /// What the masks are made of, with the offset.
  std::uint64_t seed() const { return self().seed; }
  /// Calls while training so far.
  std::uint64_t offset() const { return self().offset; }
  /// Goes on with the masks that follow this offset.
  void set_offset(std::uint64_t offset) const { self().offset = offset; }
  Dropout clone() const;  ///< A copy with an offset and a mode of its own.
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
