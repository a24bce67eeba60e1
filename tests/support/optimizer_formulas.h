// What papers and torch's documentation say that optimizers do to one number, as
// plain float64 code.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "fusebook/optim/all.h"

namespace optimizer_rules {

/// One number of a model, with what the optimizer keeps for it.
struct Element {
  double param = 0;
  std::array<double, 3> state{};
};

template <class Options>
double penalized(const Options& o, const Element& x, double grad) {
  return (o.maximize ? -grad : grad) + o.weight_decay.value() * x.param;
}

// With decoupled decay the parameter shrinks and the gradient stays.
template <class Options>
double decayed(const Options& o, Element& x, double grad) {
  if (!o.decoupled_weight_decay) return penalized(o, x, grad);
  x.param -= o.lr.value() * o.weight_decay.value() * x.param;
  return o.maximize ? -grad : grad;
}

inline void moments(double beta1, double beta2, Element& x, double g) {
  x.state[0] = beta1 * x.state[0] + (1 - beta1) * g;
  x.state[1] = beta2 * x.state[1] + (1 - beta2) * g * g;
}

inline void apply(const fuse::SGDOptions& o, Element& x, double grad,
                  double step) {
  double g = penalized(o, x, grad);
  const double momentum = o.momentum.value();
  if (momentum != 0) {
    double& buffer = x.state[0];
    buffer = step > 1 ? momentum * buffer + (1 - o.dampening.value()) * g : g;
    g = o.nesterov ? g + momentum * buffer : buffer;
  }
  x.param -= o.lr.value() * g;
}

inline void apply(const fuse::NAdamOptions& o, Element& x, double grad,
                  double step) {
  const double g = decayed(o, x, grad);
  const double beta1 = o.betas[0].value();
  const double beta2 = o.betas[1].value();
  moments(beta1, beta2, x, g);
  const auto mu_of = [&](double t) {
    return beta1 * (1 - 0.5 * std::pow(0.96, t * o.momentum_decay.value()));
  };
  const double mu = mu_of(step);
  const double mu_next = mu_of(step + 1);
  double& mu_product = x.state[2];
  mu_product *= mu;
  const double m_hat = mu_next * x.state[0] / (1 - mu_product * mu_next) +
                       (1 - mu) * g / (1 - mu_product);
  const double v_hat = x.state[1] / (1 - std::pow(beta2, step));
  x.param -= o.lr.value() * m_hat / (std::sqrt(v_hat) + o.eps.value());
}

inline void apply(const fuse::RAdamOptions& o, Element& x, double grad,
                  double step) {
  const double g = decayed(o, x, grad);
  const double beta1 = o.betas[0].value();
  const double beta2 = o.betas[1].value();
  moments(beta1, beta2, x, g);
  const double m_hat = x.state[0] / (1 - std::pow(beta1, step));
  const double power = std::pow(beta2, step);
  const double limit = 2 / (1 - beta2) - 1;
  const double length = limit - 2 * step * power / (1 - power);
  double factor = 1;
  if (length > 5) {
    const double l =
        std::sqrt(1 - power) / (std::sqrt(x.state[1]) + o.eps.value());
    factor = l * std::sqrt((length - 4) * (length - 2) * limit /
                           ((limit - 4) * (limit - 2) * length));
  }
  x.param -= o.lr.value() * m_hat * factor;
}

inline void apply(const fuse::AdamaxOptions& o, Element& x, double grad,
                  double step) {
  const double g = penalized(o, x, grad);
  const double beta1 = o.betas[0].value();
  double& m = x.state[0];
  double& u = x.state[1];
  m = beta1 * m + (1 - beta1) * g;
  u = std::max(o.betas[1].value() * u, std::abs(g) + o.eps.value());
  x.param -= o.lr.value() * m / ((1 - std::pow(beta1, step)) * u);
}

inline void apply(const fuse::AdagradOptions& o, Element& x, double grad,
                  double step) {
  const double g = penalized(o, x, grad);
  const double rate = o.lr.value() / (1 + (step - 1) * o.lr_decay.value());
  x.state[0] += g * g;
  x.param -= rate * g / (std::sqrt(x.state[0]) + o.eps.value());
}

inline void apply(const fuse::AdadeltaOptions& o, Element& x, double grad,
                  double) {
  const double g = penalized(o, x, grad);
  const double rho = o.rho.value();
  const double eps = o.eps.value();
  auto& [v, u, unused] = x.state;
  v = rho * v + (1 - rho) * g * g;
  const double delta = std::sqrt(u + eps) / std::sqrt(v + eps) * g;
  u = rho * u + (1 - rho) * delta * delta;
  x.param -= o.lr.value() * delta;
}

inline void apply(const fuse::RMSpropOptions& o, Element& x, double grad,
                  double) {
  const double g = penalized(o, x, grad);
  const double alpha = o.alpha.value();
  auto& [v, buffer, average] = x.state;
  v = alpha * v + (1 - alpha) * g * g;
  double variance = v;
  if (o.centered) {
    average = alpha * average + (1 - alpha) * g;
    variance -= average * average;
  }
  const double move = g / (std::sqrt(variance) + o.eps.value());
  if (o.momentum.value() > 0) {
    buffer = o.momentum.value() * buffer + move;
    x.param -= o.lr.value() * buffer;
  } else {
    x.param -= o.lr.value() * move;
  }
}

inline void apply(const fuse::RpropOptions& o, Element& x, double grad,
                  double) {
  double g = o.maximize ? -grad : grad;
  double& prev = x.state[0];
  double& size = x.state[1];
  if (prev * g > 0) {
    size *= o.etas[1].value();
  } else if (prev * g < 0) {
    size *= o.etas[0].value();
    g = 0;
  }
  // The documentation bounds what has changed, the code every step size.
  size = std::clamp(size, o.step_sizes[0].value(), o.step_sizes[1].value());
  if (g > 0) x.param -= size;
  if (g < 0) x.param += size;
  prev = g;
}

inline void apply(const fuse::ASGDOptions& o, Element& x, double grad,
                  double step) {
  const double g = penalized(o, x, grad);
  auto& [average, eta, mu] = x.state;
  const double lr = o.lr.value();
  const double lambd = o.lambd.value();
  x.param = (1 - lambd * eta) * x.param - eta * g;
  average += mu * (x.param - average);
  eta = lr / std::pow(1 + lambd * lr * step, o.alpha.value());
  mu = 1 / std::max(1.0, step - o.t0.value());
}

// With the schedules as the paper has them.
inline void apply(const fuse::AdEMAMixOptions& o, Element& x, double grad,
                  double step) {
  const double g = o.maximize ? -grad : grad;
  const double beta1 = o.betas[0].value();
  const double beta2 = o.betas[1].value();
  double beta3 = o.betas[2].value();
  double alpha = o.alpha.value();
  if (step < o.t_beta3.value()) {
    const double share = step / o.t_beta3.value();
    const double low = std::log(beta1);
    const double high = std::log(beta3);
    beta3 = std::exp(low * high / ((1 - share) * high + share * low));
  }
  if (step < o.t_alpha.value()) alpha *= step / o.t_alpha.value();
  auto& [fast, slow, squares] = x.state;
  fast = beta1 * fast + (1 - beta1) * g;
  slow = beta3 * slow + (1 - beta3) * g;
  squares = beta2 * squares + (1 - beta2) * g * g;
  const double mean = fast / (1 - std::pow(beta1, step)) + alpha * slow;
  const double root = std::sqrt(squares / (1 - std::pow(beta2, step)));
  x.param -= o.lr.value() *
             (mean / (root + o.eps.value()) + o.weight_decay.value() * x.param);
}

// ---- of tensors with one element, whose norm is its size --------------------

inline void apply(const fuse::LAMBOptions& o, Element& x, double grad,
                  double step) {
  const double beta1 = o.betas[0].value();
  const double beta2 = o.betas[1].value();
  moments(beta1, beta2, x, o.maximize ? -grad : grad);
  const double m =
      x.state[0] / (o.bias_correction ? 1 - std::pow(beta1, step) : 1);
  const double v =
      x.state[1] / (o.bias_correction ? 1 - std::pow(beta2, step) : 1);
  const double direction =
      m / (std::sqrt(v) + o.eps.value()) + o.weight_decay.value() * x.param;
  const bool defined = x.param != 0 && direction != 0;
  const double ratio = defined ? std::abs(x.param / direction) : 1;
  x.param -= o.lr.value() * ratio * direction;
}

inline void apply(const fuse::LARSOptions& o, Element& x, double grad, double) {
  const double size = std::abs(x.param);
  const double length = std::abs(grad) + o.weight_decay.value() * size;
  const bool defined = size != 0 && grad != 0;
  const double ratio =
      defined ? o.trust_coefficient.value() * size / (length + o.eps.value())
              : 1;
  double direction = ratio * penalized(o, x, grad);
  const double momentum = o.momentum.value();
  if (momentum != 0) {
    double& buffer = x.state[0];
    buffer = momentum * buffer + direction;
    direction = o.nesterov ? direction + momentum * buffer : buffer;
  }
  x.param -= o.lr.value() * direction;
}

}  // namespace optimizer_rules
