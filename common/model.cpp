#include "model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "allocator.h"
#include "cublas.h"
#include "element.h"
#include "error.h"
#include "linear_kernels.h"
#include "linear_on_gpu.h"
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

LinearSizes sizes_of(const Linear& layer, const Tensor& input) {
  const std::int64_t batch = input.dim() == 2 ? input.shape()[0] : 1;
  return {batch, layer.in_features(), layer.out_features()};
}

/// What multiplies matrices on the tensor's device; nullptr for the loops here.
const Cublas* blas_for(const Tensor& tensor) {
  return is_reduced(tensor.dtype()) ? nullptr : cublas_for(tensor.device());
}

/// The tensor itself, or a copy where it is on a GPU, its elements do not lie side by side, or
/// its address does not suit its dtype.
Tensor aligned(const Tensor& given) {
  const Tensor tensor = given.cpu();
  if (!tensor.is_contiguous()) return tensor.contiguous();
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.raw_data());
  return address % size_of(tensor.dtype()) == 0 ? tensor : tensor.clone();
}

template <class T>
const T* read(const Tensor& tensor) {
  return tensor.data<T>();
}

Tensor contiguous_bias(const Linear& layer) {
  return layer.bias().defined() ? layer.bias().contiguous() : Tensor();
}

Tensor apply(const Linear& layer, const Tensor& input) {
  Shape shape = input.shape();
  shape.back() = layer.out_features();
  if (const Cublas* const blas = blas_for(input)) {
    const Tensor output = empty(shape, input.dtype(), input.device());
    linear_forward_on(*blas, sizes_of(layer, input), input.contiguous(),
                      layer.weight().contiguous(), contiguous_bias(layer),
                      output);
    return output;
  }
  Tensor output = empty(shape, input.dtype(), cpu_device);
  const Tensor source = aligned(input);
  const Tensor weight = layer.weight().cpu().contiguous();
  const Tensor bias =
      layer.bias().defined() ? layer.bias().cpu().contiguous() : Tensor();
  with_computing_type("Linear", input.dtype(), [&](auto type) {
    using T = decltype(type);
    linear_forward(sizes_of(layer, input), read<T>(source), read<T>(weight),
                   bias.defined() ? read<T>(bias) : nullptr, output.data<T>());
  });
  return output.to(input.device());
}

/// The gradient to write to, and whether it already holds something. One with
/// strides, or of a GPU where the host computes it, is written to through a
/// contiguous copy.
struct GradTarget {
  GradTarget(Tensor parameter, bool on_host)
      : accumulate(parameter.grad().defined()) {
    if (!accumulate) {
      parameter.set_grad(
          empty(parameter.shape(), parameter.dtype(), parameter.device()));
    }
    grad = parameter.grad();
    tensor = (on_host ? grad.cpu() : grad).contiguous();
  }
  void finish() {
    if (tensor.impl() != grad.impl()) grad.copy_(tensor);
  }

  bool accumulate;
  Tensor grad;
  Tensor tensor;
};

void accumulate_grads_on(const Cublas& blas, const Linear& layer,
                         const Tensor& input, const Tensor& grad_output) {
  const LinearSizes sizes = sizes_of(layer, input);
  const Tensor from = grad_output.contiguous();
  GradTarget weight(layer.weight(), false);
  linear_grad_weight_on(blas, sizes, from, input.contiguous(),
                        weight.accumulate, weight.tensor);
  weight.finish();
  if (!layer.bias().defined()) return;
  GradTarget bias(layer.bias(), false);
  linear_grad_bias_on(blas, sizes, from, bias.accumulate, bias.tensor);
  bias.finish();
}

void accumulate_grads(const Linear& layer, const Tensor& input,
                      const Tensor& grad_output) {
  if (const Cublas* const blas = blas_for(input)) {
    return accumulate_grads_on(*blas, layer, input, grad_output);
  }
  const LinearSizes sizes = sizes_of(layer, input);
  const Tensor grad = grad_output.cpu().contiguous();
  const Tensor source = aligned(input);
  with_computing_type("Linear", input.dtype(), [&](auto type) {
    using T = decltype(type);
    GradTarget weight(layer.weight(), true);
    linear_grad_weight(sizes, read<T>(grad), read<T>(source), weight.accumulate,
                       weight.tensor.data<T>());
    weight.finish();
    if (!layer.bias().defined()) return;
    GradTarget bias(layer.bias(), true);
    linear_grad_bias(sizes, read<T>(grad), bias.accumulate,
                     bias.tensor.data<T>());
    bias.finish();
  });
}

Tensor grad_of_input(const Linear& layer, const Tensor& input,
                     const Tensor& grad_output) {
  if (const Cublas* const blas = blas_for(input)) {
    const Tensor on_gpu = empty(input.shape(), input.dtype(), input.device());
    linear_grad_input_on(*blas, sizes_of(layer, input),
                         grad_output.contiguous(), layer.weight().contiguous(),
                         on_gpu);
    return on_gpu;
  }
  Tensor grad = empty(input.shape(), input.dtype(), cpu_device);
  const Tensor from = grad_output.cpu().contiguous();
  const Tensor weight = layer.weight().cpu().contiguous();
  with_computing_type("Linear", input.dtype(), [&](auto type) {
    using T = decltype(type);
    linear_grad_input(sizes_of(layer, input), read<T>(from), read<T>(weight),
                      grad.data<T>());
  });
  return grad.to(input.device());
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
