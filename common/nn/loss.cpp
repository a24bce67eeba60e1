#include "fusebook/nn/loss.h"

#include <fmt/core.h>

#include <array>
#include <source_location>
#include <string>
#include <vector>

#include "fusebook/device/run_at_once.h"
#include "fusebook/ir/program.h"
#include "fusebook/nn/functional.h"
#include "fusebook/ops/element.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/autograd.h"
#include "fusebook/tensor/sums_of_tensors.h"
#include "fusebook/tensor/tensor_list.h"

namespace fuse {
namespace {

std::string shape_and_dtype(const Tensor& tensor) {
  if (!tensor.defined()) return "an undefined tensor";
  return "shape " + to_string(tensor.shape()) + " and " +
         name_of(tensor.dtype());
}

void check_pair(const Tensor& output, const Tensor& target) {
  if (output.defined() && target.defined() &&
      output.shape() == target.shape() && output.dtype() == target.dtype()) {
    if (output.numel() > 0) return;
    throw Error("mse_loss: the mean of no elements is undefined");
  }
  throw Error("mse_loss: the output has " + shape_and_dtype(output) +
              ", but the target has " + shape_and_dtype(target));
}

// grad = scale * (a - b), computed in float64 and rounded once.
Tensor scaled_difference(const Tensor& a, const Tensor& b, double scale) {
  const TensorList lists[] = {{a}, {b}, {empty_like(a)}};
  const auto here = std::source_location::current();
  a.address(false);
  b.address(false);
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
  run_at_once(program);
  return lists[2][0];
}

/// The checked arguments of nll_loss: number of classes, and of samples that
/// count.
struct Samples {
  std::int64_t classes;
  std::int64_t counted = 0;
};

[[noreturn]] void refuse(const std::string& what) {
  throw Error("nll_loss: " + what);
}

Samples check_samples(const Tensor& input,
                      const std::vector<std::int64_t>& target,
                      std::int64_t ignore_index) {
  if (!input.defined()) refuse("the input is undefined");
  if (input.dim() != 1 && input.dim() != 2) {
    refuse("the input has shape " + to_string(input.shape()) +
           "; expected shape [classes] or [batch, classes]");
  }
  const std::int64_t batch = input.dim() == 2 ? input.shape()[0] : 1;
  if (batch != std::int64_t(target.size())) {
    refuse(fmt::format("the input has {} samples, but the target has {}", batch,
                       target.size()));
  }
  Samples samples = {input.shape().back()};
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] == ignore_index) continue;
    if (target[i] < 0 || target[i] >= samples.classes) {
      refuse(fmt::format("target[{}] is {}, but there are only {} classes", i,
                         target[i], samples.classes));
    }
    ++samples.counted;
  }
  return samples;
}

/// Calls use(position) for each sample that counts, with its element's
/// position.
template <class Use>
void for_each_sample(const Samples& samples,
                     const std::vector<std::int64_t>& target,
                     std::int64_t ignore_index, const Use& use) {
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] == ignore_index) continue;
    use(i * std::size_t(samples.classes) + std::size_t(target[i]));
  }
}

}  // namespace

Tensor mse_loss(const Tensor& output, const Tensor& target) {
  check_pair(output, target);
  // Taking the address flushes pending recorded writes first.
  output.address(false);
  target.address(false);
  const Tensor beside = target.detach().to(output.device());
  const double sum = sum_of_squared_differences(output.detach(), beside);
  const Tensor loss = tensor(sum / double(output.numel()), output.dtype());
  const auto backward = [output = output.detach(), beside,
                         of_output = wants_grad(output),
                         of_target = wants_grad(target),
                         home = target.device()](const Tensor& grad) {
    const double scale = grad.item() * 2 / double(output.numel());
    Grads grads(2);
    if (of_output) grads[0] = scaled_difference(output, beside, scale);
    if (of_target) {
      grads[1] = scaled_difference(beside, output, scale).to(home);
    }
    return grads;
  };
  return with_grad(loss, {output, target}, backward);
}

Tensor nll_loss(const Tensor& input, const std::vector<std::int64_t>& target,
                std::int64_t ignore_index) {
  const Samples samples = check_samples(input, target, ignore_index);
  const Tensor host = input.detach().cpu().contiguous();
  double sum = 0;
  with_type(input.dtype(), [&](auto type) {
    using T = decltype(type);
    const void* const data = host.address(false);
    for_each_sample(samples, target, ignore_index, [&](std::size_t at) {
      sum += double(load_element<T>(data, at));
    });
  });
  const Tensor loss = tensor(-sum / double(samples.counted), input.dtype());
  return with_grad(
      loss, {input},
      [=, shape = input.shape(), dtype = input.dtype(),
       device = input.device()](const Tensor& grad) -> Grads {
        const Tensor back = zeros(shape, dtype, cpu_device);
        const double share = -grad.item() / double(samples.counted);
        with_type(dtype, [&](auto type) {
          using T = decltype(type);
          for_each_sample(samples, target, ignore_index, [&](std::size_t at) {
            store_element(back.raw_data(), at, static_cast<T>(share));
          });
        });
        return {back.to(device)};
      });
}

Tensor cross_entropy(const Tensor& input,
                     const std::vector<std::int64_t>& target,
                     std::int64_t ignore_index) {
  check_defined(input, "the input");
  check_samples(input, target, ignore_index);
  return nll_loss(log_softmax(input, -1), target, ignore_index);
}

}  // namespace fuse
