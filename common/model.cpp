#include "model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "allocator.h"
#include "element.h"
#include "error.h"
#include "matmul.h"
#include "tensor_layout.h"

namespace fuse {
namespace {

std::string name_of_layer(const Linear& layer) {
  return "Linear(" + std::to_string(layer.in_features()) + ", " +
         std::to_string(layer.out_features()) + ")";
}

/// "layer 3, Linear(4, 5)" in a stack, "Linear(4, 5)" alone.
std::string place_of(const std::vector<Linear>& layers, std::size_t index) {
  std::string name = name_of_layer(layers[index]);
  if (layers.size() == 1) return name;
  return std::string("layer ").append(std::to_string(index)) + ", " + name;
}

void check_input(const std::vector<Linear>& layers, std::size_t index,
                 const Tensor& input) {
  const Linear& layer = layers[index];
  if (!input.defined()) {
    throw Error(place_of(layers, index) + ": the input is undefined");
  }
  const std::string found = "the input has shape " + to_string(input.shape()) +
                            " and dtype " + name_of(input.dtype());
  if ((input.dim() != 1 && input.dim() != 2) ||
      input.shape().back() != layer.in_features()) {
    const std::string size = std::to_string(layer.in_features());
    throw Error(place_of(layers, index) + ": " + found + "; shape [" + size +
                "] or [batch, " + size + "] is needed");
  }
  if (input.dtype() != layer.weight().dtype()) {
    throw Error(place_of(layers, index) + ": " + found + "; the weight is " +
                name_of(layer.weight().dtype()));
  }
  if (input.device() != layer.weight().device()) {
    throw Error(place_of(layers, index) + ": the input is on " +
                to_string(input.device()) + "; the weight is on " +
                to_string(layer.weight().device()));
  }
}

/// The input as a matrix of one row a sample.
Tensor as_rows(const Tensor& tensor) {
  return tensor.dim() == 2 ? tensor
                           : tensor.contiguous().view({1, tensor.numel()});
}

Tensor apply(const Linear& layer, const Tensor& input) {
  Shape shape = input.shape();
  shape.back() = layer.out_features();
  const Tensor output = empty(shape, input.dtype(), input.device());
  const Tensor rows = as_rows(output);
  const bool biased = layer.bias().defined();
  if (biased) Tensor(rows).copy_(layer.bias().expand(rows.shape()));
  matmul_into(rows, as_rows(input), layer.weight().t(), biased);
  return output;
}

/// The gradient to write to, and whether it already holds something.
struct GradTarget {
  explicit GradTarget(Tensor parameter)
      : accumulate(parameter.grad().defined()) {
    if (!accumulate) {
      parameter.set_grad(
          empty(parameter.shape(), parameter.dtype(), parameter.device()));
    }
    grad = parameter.grad();
  }

  bool accumulate;
  Tensor grad;
};

void accumulate_grads(const Linear& layer, const Tensor& input,
                      const Tensor& grad_output) {
  const Tensor from = as_rows(grad_output);
  const GradTarget weight(layer.weight());
  matmul_into(weight.grad, from.t(), as_rows(input), weight.accumulate);
  if (!layer.bias().defined()) return;
  // A product with ones sums the rows.
  const Tensor ones =
      full({1, from.shape()[0]}, 1, from.dtype(), from.device());
  const GradTarget bias(layer.bias());
  const Tensor sums =
      empty({1, layer.out_features()}, from.dtype(), from.device());
  if (bias.accumulate) {
    Tensor(sums).copy_(bias.grad.contiguous().view(sums.shape()));
  }
  matmul_into(sums, ones, from, bias.accumulate);
  Tensor(bias.grad).copy_(sums.view(bias.grad.shape()));
}

Tensor grad_of_input(const Linear& layer, const Tensor& input,
                     const Tensor& grad_output) {
  const Tensor grad = empty(input.shape(), input.dtype(), input.device());
  matmul_into(as_rows(grad), as_rows(grad_output), layer.weight());
  return grad;
}

/// Backward of a whole stack in one loop: a chain of one object a layer would
/// need a stack frame a layer, and stacks can be very deep.
class StackBackward : public GradFn {
 public:
  StackBackward(std::vector<Linear> layers, std::vector<Tensor> inputs)
      : layers_(std::move(layers)), inputs_(std::move(inputs)) {}

  void backward(const Tensor& grad_output) override {
    const auto next = inputs_[0].impl()->grad_fn;
    Tensor grad = grad_output;
    for (std::size_t i = layers_.size(); i-- > 0;) {
      accumulate_grads(layers_[i], inputs_[i], grad);
      if (i > 0 || next != nullptr) {
        grad = grad_of_input(layers_[i], inputs_[i], grad);
      }
    }
    if (next != nullptr) next->backward(grad);
  }

 private:
  std::vector<Linear> layers_;
  std::vector<Tensor> inputs_;
};

Tensor run_stack(const std::vector<Linear>& layers, const Tensor& input) {
  std::vector<Tensor> inputs;
  Tensor value = input;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    check_input(layers, i, value);
    inputs.push_back(value);
    value = apply(layers[i], value);
  }
  if (!layers.empty()) {
    value.impl()->grad_fn =
        std::make_shared<StackBackward>(layers, std::move(inputs));
  }
  return value;
}

Tensor clone_with_grad(const Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  Tensor copy = tensor.clone();
  if (tensor.grad().defined()) copy.set_grad(tensor.grad().clone());
  return copy;
}

void check_size(std::int64_t value, const char* what) {
  if (value >= 1) return;
  throw Error(std::string(what) + " must be at least 1, not " +
              std::to_string(value));
}

}  // namespace

Linear::Linear(std::int64_t in, std::int64_t out, Generator& generator,
               bool bias, DType dtype) {
  check_size(in, "Linear: the number of inputs");
  check_size(out, "Linear: the number of outputs");
  with_computing_type("Linear", dtype, [](auto) {});
  const double bound = 1.0 / std::sqrt(double(in));
  weight_ = empty({out, in}, dtype);
  uniform_(weight_, -bound, bound, generator);
  if (!bias) return;
  bias_ = empty({out}, dtype);
  uniform_(bias_, -bound, bound, generator);
}

Tensor Linear::operator()(const Tensor& input) const {
  return run_stack({*this}, input);
}

std::vector<Tensor> Linear::parameters() const {
  if (!bias_.defined()) return {weight_};
  return {weight_, bias_};
}

Linear Linear::clone() const {
  return {clone_with_grad(weight_), clone_with_grad(bias_)};
}

Sequential::Sequential(std::vector<Linear> layers)
    : layers_(std::move(layers)) {
  for (std::size_t i = 1; i < layers_.size(); ++i) {
    const Linear& before = layers_[i - 1];
    if (before.out_features() == layers_[i].in_features() &&
        before.weight().dtype() == layers_[i].weight().dtype()) {
      continue;
    }
    throw Error("Sequential: " + place_of(layers_, i) + " of " +
                name_of(layers_[i].weight().dtype()) +
                " cannot take the output of " + place_of(layers_, i - 1) +
                " of " + name_of(before.weight().dtype()));
  }
}

Tensor Sequential::operator()(const Tensor& input) const {
  return run_stack(layers_, input);
}

std::vector<Tensor> Sequential::parameters() const {
  std::vector<Tensor> all;
  for (const Linear& layer : layers_) {
    for (const Tensor& parameter : layer.parameters()) all.push_back(parameter);
  }
  return all;
}

void Sequential::zero_grad(bool set_to_none) const {
  for (Tensor& parameter : parameters()) {
    if (set_to_none) {
      parameter.set_grad(Tensor());
    } else if (parameter.grad().defined()) {
      without_repeats(parameter.grad()).fill_(0);
    }
  }
}

Sequential Sequential::clone() const {
  std::vector<Linear> copies;
  for (const Linear& layer : layers_) copies.push_back(layer.clone());
  return Sequential(std::move(copies));
}

Sequential linear_stack(std::int64_t layers, std::int64_t width,
                        Generator& generator, DType dtype) {
  check_size(layers, "linear_stack: the number of layers");
  check_size(width, "linear_stack: the width");
  const double bytes =
      double(layers) * double(width) * double(width) * double(size_of(dtype));
  require_memory(bytes < 9e18 ? std::int64_t(bytes)
                              : std::numeric_limits<std::int64_t>::max());
  std::vector<Linear> stack;
  for (std::int64_t i = 0; i < layers; ++i) {
    stack.emplace_back(width, width, generator, false, dtype);
  }
  return Sequential(std::move(stack));
}

}  // namespace fuse
