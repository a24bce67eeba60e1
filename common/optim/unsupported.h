#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "fusebook/optim_base/list_optimizer.h"
#include "fusebook/support/error.h"

namespace fuse {

/// An optimizer of torch.optim that Fusebook does not have: code written for it
/// compiles, and making one throws Error saying why and what to use.
template <class Options>
class UnsupportedOptimizer : public ListOptimizer<Options> {
 public:
  using ListOptimizer<Options>::ListOptimizer;

 protected:
  // Never called: validate() always throws.
  std::span<const StateSpec> state_specs(const Options&) const final {
    return {};
  }
  void update(const Options&, const Batch&) const final {}
};

/// Options of torch.optim.LBFGS, with its defaults.
struct LBFGSOptions {
  Scalar lr = 1.0;
  int max_iter = 20;
  std::optional<int> max_eval = {};
  double tolerance_grad = 1e-7;
  double tolerance_change = 1e-9;
  int history_size = 100;
  std::optional<std::string> line_search_fn = {};
  bool foreach = true;

  template <class F>
  void for_each_scalar(F f) {
    f("lr", lr);
  }
  template <class F>
  void for_each_flag(F) {}

  /// Always throws Error.
  [[noreturn]] void validate() const {
    throw Error(
        "LBFGS is not supported: its step calls the closure several times and "
        "joins all parameters into one vector, which cannot be expressed as "
        "list operations; use Adam, SGD or another optimizer of optim/all.h");
  }
};
/// Making one throws Error saying why and what to use.
using LBFGS = UnsupportedOptimizer<LBFGSOptions>;

/// Options of torch.optim.SparseAdam, with its defaults.
struct SparseAdamOptions {
  Scalar lr = 1e-3;
  std::array<Scalar, 2> betas = {0.9, 0.999};
  Scalar eps = 1e-8;
  bool maximize = false;
  bool foreach = true;

  template <class F>
  void for_each_scalar(F f) {
    f("lr", lr);
    f("betas", betas);
    f("eps", eps);
  }
  template <class F>
  void for_each_flag(F f) {
    f("maximize", maximize);
  }

  /// Always throws Error.
  [[noreturn]] void validate() const {
    throw Error(
        "SparseAdam is not supported: Fusebook has dense tensors and no "
        "sparse gradients; use Adam");
  }
};
/// Making one throws Error saying why and what to use.
using SparseAdam = UnsupportedOptimizer<SparseAdamOptions>;

}  // namespace fuse
