#pragma once

#include <array>
#include <utility>
#include <vector>

#include "error.h"
#include "foreach.h"
#include "optim/optimizer.h"

namespace fuse {

/// Options of torch.optim.Adam, with its defaults.
struct AdamOptions {
  Scalar lr = 1e-3;
  std::array<Scalar, 2> betas = {0.9, 0.999};
  Scalar eps = 1e-8;
  Scalar weight_decay = 0.0;
  bool amsgrad = false;
  bool maximize = false;
  /// Decays the parameters themselves instead of adding to the gradients.
  bool decoupled_weight_decay = false;
  /// False updates one tensor after the other.
  bool foreach = true;

  template <class F>
  void for_each_scalar(F f) {
    f("lr", -1, lr);
    f("betas", 0, betas[0]);
    f("betas", 1, betas[1]);
    f("eps", -1, eps);
    f("weight_decay", -1, weight_decay);
  }

  /// Throws Error for what torch.optim.Adam rejects.
  void validate() const {
    check(lr.value() >= 0, "learning rate", lr);
    check(eps.value() >= 0, "epsilon value", eps);
    for (std::size_t i = 0; i < betas.size(); ++i) {
      const double beta = betas[i].value();
      const std::string what = "beta parameter at index " + std::to_string(i);
      check(beta >= 0 && beta < 1, what.c_str(), betas[i]);
    }
    check(weight_decay.value() >= 0, "weight_decay value", weight_decay);
  }

 private:
  static void check(bool valid, const char* what, const Scalar& value) {
    if (valid) return;
    throw Error("Adam: invalid " + std::string(what) + ": " +
                std::to_string(value.value()));
  }
};

/// Adam (Kingma and Ba, 2015) as torch.optim.Adam computes it.
class Adam : public ListOptimizer<AdamOptions> {
 public:
  explicit Adam(std::vector<Tensor> params, AdamOptions options = {})
      : Adam(std::vector<Group>{{std::move(params), std::move(options)}}) {}
  explicit Adam(std::vector<Group> groups) : ListOptimizer(std::move(groups)) {}

 protected:
  std::vector<StateSpec> state_specs(const AdamOptions& o) const override {
    std::vector<StateSpec> specs = {{"exp_avg"}, {"exp_avg_sq"}};
    if (o.amsgrad) specs.push_back({"max_exp_avg_sq"});
    return specs;
  }

  void update(const AdamOptions& o, const Batch& batch) const override {
    const auto& [beta1, beta2] = o.betas;
    const TensorList& params = batch.params;
    const TensorList& exp_avgs = batch.states[0];
    const TensorList& exp_avg_sqs = batch.states[1];
    foreach_add_(batch.steps, 1.0);
    const TensorList grads = decay(o, batch);

    foreach_lerp_(exp_avgs, grads, 1.0 - beta1);
    foreach_mul_(exp_avg_sqs, beta2);
    foreach_addcmul_(exp_avg_sqs, grads, grads, 1.0 - beta2);
    if (o.amsgrad) foreach_maximum_(batch.states[2], exp_avg_sqs);

    // One number a parameter.
    const TensorList step_sizes = foreach_neg(foreach_div(
        o.lr, foreach_sub(1.0, foreach_pow(beta1, batch.steps))));
    const TensorList bias_corrections2_sqrt =
        foreach_sqrt(foreach_sub(1.0, foreach_pow(beta2, batch.steps)));

    const TensorList denominators =
        foreach_sqrt(o.amsgrad ? batch.states[2] : exp_avg_sqs);
    foreach_div_(denominators, bias_corrections2_sqrt);
    foreach_add_(denominators, o.eps);
    foreach_addcdiv_(params, exp_avgs, denominators, step_sizes);
  }

 private:
  // The gradients with sign and weight decay as the options want them.
  static TensorList decay(const AdamOptions& o, const Batch& batch) {
    const TensorList grads =
        o.maximize ? foreach_neg(batch.grads) : batch.grads;
    if (!o.weight_decay.is_tensor() && o.weight_decay.value() == 0) {
      return grads;
    }
    if (!o.decoupled_weight_decay) {
      return foreach_add_scaled(grads, batch.params, o.weight_decay);
    }
    foreach_mul_(batch.params, 1.0 - o.lr * o.weight_decay);
    return grads;
  }
};

}  // namespace fuse
