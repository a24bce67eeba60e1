// The optimizers that LibTorch has too, each with its own class and with ours.
#pragma once

#include <fusebook/libtorch/all.h>
#include <torch/torch.h>

template <class Their, class Our>
struct Both {
  using Theirs = Their;
  using Ours = Our;
};

struct Adam : Both<torch::optim::Adam, fuse::libtorch::Adam> {
  static auto options() {
    return torch::optim::AdamOptions(0.01).weight_decay(0.01);
  }
};
struct AMSGrad : Both<torch::optim::Adam, fuse::libtorch::Adam> {
  static auto options() {
    return torch::optim::AdamOptions(0.01).amsgrad(true).betas({0.8, 0.95});
  }
};
struct AdamW : Both<torch::optim::AdamW, fuse::libtorch::AdamW> {
  static auto options() {
    return torch::optim::AdamWOptions(0.01).weight_decay(0.1);
  }
};
struct SGD : Both<torch::optim::SGD, fuse::libtorch::SGD> {
  static auto options() { return torch::optim::SGDOptions(0.05); }
};
struct Momentum : Both<torch::optim::SGD, fuse::libtorch::SGD> {
  static auto options() {
    return torch::optim::SGDOptions(0.02).momentum(0.9).nesterov(true);
  }
};
struct RMSprop : Both<torch::optim::RMSprop, fuse::libtorch::RMSprop> {
  static auto options() { return torch::optim::RMSpropOptions(0.0005); }
};
struct CenteredRMSprop : Both<torch::optim::RMSprop, fuse::libtorch::RMSprop> {
  static auto options() {
    return torch::optim::RMSpropOptions(0.001).centered(true).momentum(0.5);
  }
};
struct Adagrad : Both<torch::optim::Adagrad, fuse::libtorch::Adagrad> {
  static auto options() {
    return torch::optim::AdagradOptions(0.05)
        .lr_decay(0.01)
        .initial_accumulator_value(0.1);
  }
};

#define EVERY_ONE \
  Adam, AMSGrad, AdamW, SGD, Momentum, RMSprop, CenteredRMSprop, Adagrad
