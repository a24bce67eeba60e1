#include "loss.h"

#include <array>
#include <memory>
#include <source_location>
#include <string>
#include <utility>

#include "element.h"
#include "error.h"
#include "program_on_gpu.h"
#include "sums_of_tensors.h"
#include "tensor_layout.h"
#include "tensor_list.h"

namespace fuse {
namespace {

std::string describe(const Tensor& tensor) {
  if (!tensor.defined()) return "an undefined tensor";
  return "shape " + to_string(tensor.shape()) + " and " +
         name_of(tensor.dtype());
}

void check_pair(const Tensor& output, const Tensor& target) {
  if (output.defined() && target.defined() &&
      output.shape() == target.shape() && output.dtype() == target.dtype()) {
    if (output.numel() > 0) return;
    throw Error("mse_loss: there is nothing to take the mean of");
  }
  throw Error("mse_loss: the output has " + describe(output) +
              ", but the target " + describe(target));
}

// Contiguous and without the way back: what goes back may not keep itself
// alive.
Tensor plain(const Tensor& tensor) {
  if (!tensor.is_contiguous()) return tensor.contiguous();
  return Tensor(bare(*tensor.impl()));
}

// grad = scale * (output - target), computed as float64 and rounded once.
void write_on_host(const Tensor& grad, double scale, const Tensor& output,
                   const Tensor& target) {
  with_type(grad.dtype(), [&](auto type) {
    using T = decltype(type);
    // Tensors may lie at any address.
    const auto at = [](const Tensor& tensor, std::size_t i) {
      return double(load_element<T>(tensor.raw_data(), i));
    };
    for (std::size_t i = 0; i < std::size_t(grad.numel()); ++i) {
      const double difference = at(output, i) - at(target, i);
      store_element(grad.raw_data(), i, T(scale * difference));
    }
  });
}

// The same on a GPU.
void write_on_gpu(const Tensor& grad, double scale, const Tensor& output,
                  const Tensor& target) {
  const TensorList lists[] = {{output}, {target}, {grad}};
  const auto here = std::source_location::current();
  Program program;
  const auto slot = [&](const TensorList& list) {
    return program.slot(list.impl()->view(), list.impl()->info());
  };
  const auto load = [&](const TensorList& list) {
    return program.cast(program.load(slot(list), here), DType::float64, here);
  };
  const std::array both = {load(lists[0]), load(lists[1])};
  const std::array factors = {program.argument(scale, {}),
                              program.apply(OpCode::sub, both, here)};
  program.store(slot(lists[2]), program.apply(OpCode::mul, factors, here),
                here);
  run_on_gpu(program);
}

/// d(loss)/d(output) = 2 (output - target) / count.
class MseBackward : public GradFn {
 public:
  MseBackward(const Tensor& output, const Tensor& target,
              std::shared_ptr<GradFn> next)
      : output_(plain(output)),
        target_(plain(target)),
        next_(std::move(next)) {}

  void backward(const Tensor& grad_output) override {
    const Device device = output_.device();
    const Tensor grad = empty(output_.shape(), output_.dtype(), device);
    const double scale = grad_output.item() * 2 / double(output_.numel());
    output_.address(false);
    target_.address(false);
    const auto write = device.is_cpu() ? write_on_host : write_on_gpu;
    write(grad, scale, output_, target_);
    next_->backward(grad);
  }

 private:
  Tensor output_;
  Tensor target_;
  std::shared_ptr<GradFn> next_;
};

}  // namespace

Tensor mse_loss(const Tensor& output, const Tensor& target) {
  check_pair(output, target);
  // Asking for the address has a recording make the numbers first.
  output.address(false);
  target.address(false);
  const Tensor beside = target.to(output.device());
  const double sum = sum_of_squared_differences(output, beside);
  Tensor loss = tensor(sum / double(output.numel()), output.dtype());
  if (output.impl()->grad_fn != nullptr) {
    loss.impl()->grad_fn =
        std::make_shared<MseBackward>(output, beside, output.impl()->grad_fn);
  }
  return loss;
}

}  // namespace fuse
