// A run of M micro-gradients a step, in one process and shared by all ranks.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "distributed/all_ranks.h"
#include "fusebook/distributed/sharded_optimizer.h"
#include "fusebook/foreach/clip_grad.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/foreach/reductions.h"
#include "fusebook/tensor/kept_gradients.h"

namespace run_testing {

using namespace fuse;

constexpr int micro_gradients = 7;

/// Any number of -1 to 1, from three others.
inline double number_at(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15 + b * 0xbf58476d1ce4e5b9 + c;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return double(std::int64_t(x ^ (x >> 31))) * 0x1p-63;
}

inline Tensor filled(const Shape& shape, DType dtype, std::uint64_t a,
                     std::uint64_t b) {
  Tensor all = empty(shape, DType::float32, cpu_device);
  for (std::int64_t i = 0; i < all.numel(); ++i) {
    all.data<float>()[i] = float(number_at(a, b, std::uint64_t(i)));
  }
  return all.to(dtype).to(default_device());
}

/// Shapes and dtypes of parameters, and which micro-gradients are missing.
struct Model {
  std::vector<std::pair<Shape, DType>> kinds;
  std::function<bool(int step, int micro, std::size_t param)> has_gradient =
      [](int, int, std::size_t) { return true; };
  /// Which of them have an infinite element.
  std::function<bool(int step, int micro)> is_broken = [](int, int) {
    return false;
  };
  /// What gradients are rounded to before they are added.
  std::optional<DType> rounded_to = {};

  std::vector<Tensor> params() const {
    std::vector<Tensor> all;
    for (const auto& [shape, dtype] : kinds) {
      all.push_back(filled(shape, dtype, 1, all.size()));
    }
    return all;
  }
  /// What a backward pass would add.
  void add_gradients(std::vector<Tensor>& params, int step, int micro) const {
    for (std::size_t p = 0; p < params.size(); ++p) {
      if (!has_gradient(step, micro, p)) continue;
      const auto seed = std::uint64_t(step) * 1000 + std::uint64_t(micro) + 10;
      Tensor one = filled(params[p].shape(), params[p].dtype(), seed, p);
      if (is_broken(step, micro)) one.fill_(INFINITY);
      if (rounded_to) one = one.to(*rounded_to).to(params[p].dtype());
      if (params[p].grad().defined()) {
        foreach_add_(TensorList({params[p].grad()}), TensorList({one}));
      } else {
        params[p].set_grad(one);
      }
    }
  }
};

using Make = std::function<std::unique_ptr<Optimizer>(std::vector<Tensor>)>;
/// Called after each step with the optimizer that schedules are attached to.
using After = std::function<void(int step)>;
using Attach = std::function<After(Optimizer&)>;

struct Run {
  Model model;
  Make make;
  Attach attach = [](Optimizer&) { return [](int) {}; };
  ShardedStep options = {};
  int steps = 20;
  int first = 0;
  std::optional<DType> gradients_as = {};

  /// The parameters at the end, and the norms, in one process.
  std::pair<std::vector<Tensor>, std::vector<double>> alone() const;
  /// The same on all ranks.
  std::pair<std::vector<Tensor>, std::vector<double>> shared() const;
};

inline std::vector<TensorList> lists_of(const std::vector<Tensor>& params) {
  std::vector<Tensor> grads;
  for (const Tensor& each : params) {
    if (each.grad().defined()) grads.push_back(each.grad());
  }
  return lists_by_dtype(grads, "grads");
}

inline std::pair<std::vector<Tensor>, std::vector<double>> Run::alone() const {
  Model rounding = model;
  rounding.rounded_to = gradients_as;
  auto params = model.params();
  const auto opt = make(params);
  const After after = attach(*opt);
  std::vector<double> norms;
  for (int step = first; step < first + steps; ++step) {
    opt->zero_grad();
    for (int m = 0; m < micro_gradients; ++m) {
      rounding.add_gradients(params, step, m);
    }
    std::optional<Scalar> skip;
    for (const TensorList& list : lists_of(params)) {
      if (options.divide_by) foreach_div_(list, *options.divide_by);
      if (options.skip_nonfinite && all_finite(list).value() == 0) skip = 1.0;
    }
    if (options.max_norm) {
      norms.push_back(clip_grad_norm_(params, *options.max_norm).value());
    }
    opt->step({.skip = skip});
    after(step);
  }
  return {params, norms};
}

inline void add_own_gradients(ShardedOptimizer& sharded, const Model& model,
                              std::vector<Tensor>& params, int step) {
  for (int m = given_ranks->rank(); m < micro_gradients;
       m += given_ranks->size()) {
    model.add_gradients(params, step, m);
    sharded.add_gradients();
  }
}

/// A model that all ranks train.
template <class Kind>
struct SharedTraining {
  explicit SharedTraining(Model given)
      : model(std::move(given)), params(model.params()) {}

  void step(int k, const ShardedStep& options = {}) {
    add_own_gradients(sharded, model, params, k);
    sharded.step(options);
  }

  Model model;
  std::vector<Tensor> params;
  Kind opt{params};
  ShardedOptimizer sharded{
      *given_ranks, opt, {.backend = Backend::interpreted}};
};

inline std::pair<std::vector<Tensor>, std::vector<double>> Run::shared() const {
  auto params = model.params();
  const auto opt = make(params);
  ShardedOptimizer sharded(*given_ranks, *opt,
                           {.backend = Backend::interpreted});
  if (gradients_as) sharded.send_gradients_as(gradients_as);
  const After after = attach(*opt);
  std::vector<double> norms;
  for (int step = first; step < first + steps; ++step) {
    add_own_gradients(sharded, model, params, step);
    const ShardedResult result = sharded.step(options);
    if (result.norm) norms.push_back(*result.norm);
    after(step);
  }
  return {params, norms};
}

}  // namespace run_testing
