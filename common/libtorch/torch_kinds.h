#pragma once

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <tuple>

#include "fusebook/optim/adagrad.h"
#include "fusebook/optim/adam.h"
#include "fusebook/optim/adamw.h"
#include "fusebook/optim/rmsprop.h"
#include "fusebook/optim/sgd.h"

namespace fuse::libtorch::kinds {

// The optimizers that LibTorch has: its classes, with another step. Each calls
// visit(name, value) for the options and visit(name, tensor) for the states that
// are kept with these options, by the names that our optimizers use.

template <class Theirs, class Ours, class TheirOptions, class State>
struct AdamLike {
  using Own = Ours;
  using Base = Theirs;
  using Options = TheirOptions;
  using ParamState = State;

  template <class Visit>
  static void options(const Options& o, Visit visit) {
    visit("lr", o.lr());
    visit("betas[0]", std::get<0>(o.betas()));
    visit("betas[1]", std::get<1>(o.betas()));
    visit("eps", o.eps());
    visit("weight_decay", o.weight_decay());
    visit("amsgrad", o.amsgrad());
  }
  static bool keeps_states(const Options& /*o*/) { return true; }
  template <class Visit>
  static void states(ParamState& state, const Options& o, Visit visit) {
    visit("exp_avg", state.exp_avg());
    visit("exp_avg_sq", state.exp_avg_sq());
    if (o.amsgrad()) visit("max_exp_avg_sq", state.max_exp_avg_sq());
  }
};

struct Adam
    : AdamLike<::torch::optim::Adam, ::fuse::Adam, ::torch::optim::AdamOptions,
               ::torch::optim::AdamParamState> {
  static constexpr const char* name = "Adam";
  static AdamOptions defaults() { return {}; }
};

struct AdamW
    : AdamLike<::torch::optim::AdamW, ::fuse::Adam,
               ::torch::optim::AdamWOptions, ::torch::optim::AdamWParamState> {
  static constexpr const char* name = "AdamW";
  static AdamOptions defaults() { return AdamWOptions().as_adam(); }
};

struct SGD {
  using Own = ::fuse::SGD;
  using Base = ::torch::optim::SGD;
  using Options = ::torch::optim::SGDOptions;
  using ParamState = ::torch::optim::SGDParamState;
  static constexpr const char* name = "SGD";
  static SGDOptions defaults() { return {}; }

  template <class Visit>
  static void options(const Options& o, Visit visit) {
    visit("lr", o.lr());
    visit("momentum", o.momentum());
    visit("dampening", o.dampening());
    visit("weight_decay", o.weight_decay());
    visit("nesterov", o.nesterov());
  }
  static bool keeps_states(const Options& o) { return o.momentum() != 0; }
  template <class Visit>
  static void states(ParamState& state, const Options& /*o*/, Visit visit) {
    visit("momentum_buffer", state.momentum_buffer());
  }
};

struct RMSprop {
  using Own = ::fuse::RMSprop;
  using Base = ::torch::optim::RMSprop;
  using Options = ::torch::optim::RMSpropOptions;
  using ParamState = ::torch::optim::RMSpropParamState;
  static constexpr const char* name = "RMSprop";
  static RMSpropOptions defaults() { return {}; }

  template <class Visit>
  static void options(const Options& o, Visit visit) {
    visit("lr", o.lr());
    visit("alpha", o.alpha());
    visit("eps", o.eps());
    visit("weight_decay", o.weight_decay());
    visit("momentum", o.momentum());
    visit("centered", o.centered());
  }
  static bool keeps_states(const Options& /*o*/) { return true; }
  template <class Visit>
  static void states(ParamState& state, const Options& o, Visit visit) {
    visit("square_avg", state.square_avg());
    if (o.momentum() != 0) visit("momentum_buffer", state.momentum_buffer());
    if (o.centered()) visit("grad_avg", state.grad_avg());
  }
};

struct Adagrad {
  using Own = ::fuse::Adagrad;
  using Base = ::torch::optim::Adagrad;
  using Options = ::torch::optim::AdagradOptions;
  using ParamState = ::torch::optim::AdagradParamState;
  static constexpr const char* name = "Adagrad";
  static AdagradOptions defaults() { return {}; }

  template <class Visit>
  static void options(const Options& o, Visit visit) {
    visit("lr", o.lr());
    visit("lr_decay", o.lr_decay());
    visit("weight_decay", o.weight_decay());
    visit("initial_accumulator_value", o.initial_accumulator_value());
    visit("eps", o.eps());
  }
  static bool keeps_states(const Options& /*o*/) { return true; }
  template <class Visit>
  static void states(ParamState& state, const Options& /*o*/, Visit visit) {
    visit("sum", state.sum());
  }
};

}  // namespace fuse::libtorch::kinds
