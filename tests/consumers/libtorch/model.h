// A model that is the same in every run, and what trains it.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <utility>
#include <vector>

/// A perceptron with two hidden layers, whose numbers are those of a formula.
inline torch::nn::Sequential make_model(torch::Dtype dtype = torch::kFloat) {
  torch::nn::Sequential model(torch::nn::Linear(3, 24), torch::nn::Tanh(),
                              torch::nn::Linear(24, 24), torch::nn::Tanh(),
                              torch::nn::Linear(24, 1));
  const torch::NoGradGuard guard;
  std::int64_t place = 0;
  for (auto& each : model->parameters()) {
    const auto numbers =
        torch::arange(place, place + each.numel(), torch::kDouble);
    each.copy_((torch::sin(numbers * 1.7) * 0.3).view_as(each));
    place += each.numel();
  }
  model->to(dtype);
  return model;
}

/// Inputs and targets; `order` turns the rows round, and with them the order in
/// which sums over the batch are taken.
inline std::pair<torch::Tensor, torch::Tensor> make_data(torch::Dtype dtype,
                                                         int order = 0) {
  const auto x =
      torch::sin(torch::arange(0, 64 * 3, torch::kDouble) * 0.37).view({64, 3});
  const auto turned = x.roll(order, 0);
  const auto y = torch::sin(turned.sum(1, true) * 2);
  return {turned.to(dtype), y.to(dtype)};
}

inline void forget_gradients(const std::vector<torch::Tensor>& params) {
  for (torch::Tensor each : params) each.mutable_grad() = torch::Tensor();
}

/// One step of training; returns the loss before it.
inline double train(torch::nn::Sequential& model,
                    const std::pair<torch::Tensor, torch::Tensor>& data,
                    torch::optim::Optimizer& optimizer) {
  forget_gradients(model->parameters());
  const auto loss = torch::mse_loss(model->forward(data.first), data.second);
  loss.backward();
  optimizer.step();
  return loss.item<double>();
}

/// Parameters as they are now.
inline std::vector<torch::Tensor> copies_of(
    const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> copies;
  for (const torch::Tensor& each : tensors) {
    copies.push_back(each.detach().clone());
  }
  return copies;
}

/// True if all bits are the same.
inline bool equal(const std::vector<torch::Tensor>& a,
                  const std::vector<torch::Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!torch::equal(a[i].detach(), b[i].detach())) return false;
  }
  return true;
}
