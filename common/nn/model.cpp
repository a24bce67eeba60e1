#include "fusebook/nn/model.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "fusebook/device/allocator.h"
#include "fusebook/nn/functional.h"
#include "fusebook/ops/element.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/tensor_layout.h"

namespace fuse {
namespace {

/// "layer 3, Linear(4, 5)" in a stack, "Linear(4, 5)" otherwise.
std::string place_of(const std::vector<Layer>& layers, std::size_t index) {
  std::string name = layers[index].name();
  if (layers.size() == 1) return name;
  return std::string("layer ").append(std::to_string(index)) + ", " + name;
}

bool fits(const Linear& layer, const Linear& before) {
  return before.out_features() == layer.in_features() &&
         before.weight().dtype() == layer.weight().dtype();
}

/// Layers whose output has the shape of their input.
bool keeps_shape(const Layer& layer) {
  return layer.as<ReLU>() != nullptr || layer.as<GELU>() != nullptr ||
         layer.as<Tanh>() != nullptr || layer.as<Sigmoid>() != nullptr ||
         layer.as<Softmax>() != nullptr || layer.as<LogSoftmax>() != nullptr ||
         layer.as<Dropout>() != nullptr;
}

Tensor copy_of_parameter(const Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  Tensor copy = tensor.detach().clone();
  copy.requires_grad_(tensor.requires_grad());
  if (tensor.grad().defined()) copy.set_grad(tensor.grad().clone());
  return copy;
}

void check_size(std::int64_t value, const char* what) {
  if (value >= 1) return;
  throw Error(fmt::format("{} must be at least 1, not {}", what, value));
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
  weight_.requires_grad_();
  if (!bias) return;
  bias_ = empty({out}, dtype);
  uniform_(bias_, -bound, bound, generator);
  bias_.requires_grad_();
}

std::string Linear::name() const {
  const Shape& sizes = self().weight_.shape();
  return fmt::format("Linear({}, {})", sizes[1], sizes[0]);
}

std::string Linear::problem_with(const Tensor& input) const {
  static_cast<void>(self());
  if (!input.defined()) return "the input is undefined";
  const std::string found = "the input has shape " + to_string(input.shape()) +
                            " and dtype " + name_of(input.dtype());
  if ((input.dim() != 1 && input.dim() != 2) ||
      input.shape().back() != in_features()) {
    const std::string size = std::to_string(in_features());
    return found + "; expected shape [" + size + "] or [batch, " + size + "]";
  }
  if (input.dtype() != weight_.dtype()) {
    return found + "; the weight is " + name_of(weight_.dtype());
  }
  if (input.device() != weight_.device()) {
    return "the input is on " + to_string(input.device()) +
           "; the weight is on " + to_string(weight_.device());
  }
  return "";
}

Tensor Linear::operator()(const Tensor& input) const {
  static_cast<void>(self());
  const std::string problem = problem_with(input);
  if (!problem.empty()) throw Error(name() + ": " + problem);
  return linear(input, weight_, bias_);
}

std::vector<Tensor> Linear::parameters() const {
  if (!self().bias_.defined()) return {weight_};
  return {weight_, bias_};
}

NamedTensors Linear::named_parameters() const {
  if (!self().bias_.defined()) return {{"weight", weight_}};
  return {{"weight", weight_}, {"bias", bias_}};
}

Linear Linear::clone() const {
  return {copy_of_parameter(self().weight_), copy_of_parameter(bias_)};
}

Sequential::Sequential(std::vector<Layer> layers) : layers_(std::move(layers)) {
  std::size_t last = 0;
  const Linear* before = nullptr;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Linear* const linear = layers_[i].as<Linear>();
    if (linear != nullptr && before != nullptr && !fits(*linear, *before)) {
      throw Error(fmt::format(
          "Sequential: {} of {} cannot take the output of {} of {}",
          place_of(layers_, i), name_of(linear->weight().dtype()),
          place_of(layers_, last), name_of(before->weight().dtype())));
    }
    if (keeps_shape(layers_[i])) continue;
    before = linear;
    last = i;
  }
}

Tensor Sequential::operator()(const Tensor& input) const {
  Tensor value = input;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const std::string problem = layers_[i].problem_with(value);
    if (!problem.empty()) throw Error(place_of(layers_, i) + ": " + problem);
    value = layers_[i](value);
  }
  return value;
}

NamedTensors Sequential::named_parameters() const {
  NamedTensors all;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    for (const auto& [name, parameter] : layers_[i].named_parameters()) {
      all.emplace_back(fmt::format("{}.{}", i, name), parameter);
    }
  }
  return all;
}

std::vector<Tensor> Sequential::parameters() const {
  std::vector<Tensor> all;
  for (const auto& [name, parameter] : named_parameters()) {
    all.push_back(parameter);
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

void Sequential::train(bool mode) const {
  for (const Layer& layer : layers_) layer.train(mode);
}

Sequential Sequential::clone() const {
  std::vector<Layer> copies;
  for (const Layer& layer : layers_) copies.push_back(layer.clone());
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
  std::vector<Layer> stack;
  for (std::int64_t i = 0; i < layers; ++i) {
    stack.emplace_back(Linear(width, width, generator, false, dtype));
  }
  return Sequential(std::move(stack));
}

}  // namespace fuse
