#include "loss.h"

#include <memory>
#include <string>
#include <utility>

#include "element.h"
#include "error.h"

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

// Tensors may lie at any address.
template <class T>
double difference_at(const Tensor& a, const Tensor& b, std::size_t i) {
  return double(load_element<T>(a.raw_data(), i)) -
         double(load_element<T>(b.raw_data(), i));
}

// Contiguous and without the way back: what goes back may not keep itself
// alive.
Tensor plain(const Tensor& tensor) {
  if (!tensor.is_contiguous()) return tensor.contiguous();
  auto impl = std::make_shared<TensorImpl>(*tensor.impl());
  impl->grad_fn.reset();
  impl->grad.reset();
  return Tensor(std::move(impl));
}

/// d(loss)/d(output) = 2 (output - target) / count.
class MseBackward : public GradFn {
 public:
  MseBackward(const Tensor& output, const Tensor& target,
              std::shared_ptr<GradFn> next)
      : device_(output.device()),
        output_(plain(output.cpu())),
        target_(plain(target.cpu())),
        next_(std::move(next)) {}

  void backward(const Tensor& grad_output) override {
    const Tensor grad = empty(output_.shape(), output_.dtype(), cpu_device);
    const double scale = grad_output.item() * 2 / double(output_.numel());
    with_type(grad.dtype(), [&](auto type) {
      using T = decltype(type);
      for (std::size_t i = 0; i < std::size_t(grad.numel()); ++i) {
        const double difference = difference_at<T>(output_, target_, i);
        store_element(grad.raw_data(), i, T(scale * difference));
      }
    });
    next_->backward(grad.to(device_));
  }

 private:
  Device device_;
  Tensor output_;
  Tensor target_;
  std::shared_ptr<GradFn> next_;
};

template <class T>
double mean_square(const Tensor& output, const Tensor& target) {
  double sum = 0;
  for (std::size_t i = 0; i < std::size_t(output.numel()); ++i) {
    const double difference = difference_at<T>(output, target, i);
    sum += difference * difference;
  }
  return sum / double(output.numel());
}

}  // namespace

Tensor mse_loss(const Tensor& output, const Tensor& target) {
  check_pair(output, target);
  const double mean = with_type(output.dtype(), [&](auto type) {
    using T = decltype(type);
    // Asking for the data has a recording make it first.
    const Tensor left = output.cpu().contiguous();
    const Tensor right = target.cpu().contiguous();
    static_cast<void>(left.data<T>());
    static_cast<void>(right.data<T>());
    return mean_square<T>(left, right);
  });
  Tensor loss = tensor(mean, output.dtype());
  if (output.impl()->grad_fn != nullptr) {
    loss.impl()->grad_fn =
        std::make_shared<MseBackward>(output, target, output.impl()->grad_fn);
  }
  return loss;
}

}  // namespace fuse
