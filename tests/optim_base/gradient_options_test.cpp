#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/optim/adam.h"
#include "fusebook/optim/adamw.h"
#include "fusebook/runtime/parallel.h"
#include "fusebook/support/error.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;

namespace {

// ---- what a row is made of --------------------------------------------------

// An optimizer of any kind.
struct Stepper {
  std::function<void()> step;
  std::function<Tensor(const Tensor&, const std::string&)> state;
};

template <class Kind, class Options>
Stepper make_stepper(std::vector<Tensor> params, const Options& options) {
  auto kept = std::make_shared<Kind>(std::move(params), options);
  return {[kept] { kept->step(); },
          [kept](const Tensor& param, const std::string& name) {
            return kept->state(param, name);
          }};
}

// One number of a model in float64, with what the optimizer keeps for it.
struct Element {
  double param = 0;
  std::array<double, 3> state{};
};

// One setting of all options.
struct Case {
  std::string label;
  std::vector<DType> dtypes = {DType::float32};  // parameters take turns
  std::function<Stepper(std::vector<Tensor>)> make;
  // The published update of one element, given its gradient.
  std::function<void(Element&, double grad, int step)> rule;
};

// Cases that step in one launch, which saves compilations.
using Together = std::vector<Case>;

struct OptimizerRow {
  std::string name;
  std::vector<const char*> states;  // in the order of Element::state
  std::vector<Together> cases;
};

// ---- Adam and AdamW ---------------------------------------------------------

struct AdamNumbers {
  double lr = 0.01;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool maximize = false;
  bool decoupled = false;
};

// torch.optim.Adam and AdamW as their documentation states them.
void adam_rule(const AdamNumbers& n, Element& x, double grad, int step) {
  auto& [m, v, v_max] = x.state;
  double g = n.maximize ? -grad : grad;
  if (n.decoupled) {
    x.param -= n.lr * n.weight_decay * x.param;
  } else {
    g += n.weight_decay * x.param;
  }
  m = n.beta1 * m + (1 - n.beta1) * g;
  v = n.beta2 * v + (1 - n.beta2) * g * g;
  const double m_hat = m / (1 - std::pow(n.beta1, step));
  v_max = std::max(v_max, v);
  const double v_used = n.amsgrad ? v_max : v;
  const double v_hat = v_used / (1 - std::pow(n.beta2, step));
  x.param -= n.lr * m_hat / (std::sqrt(v_hat) + n.eps);
}

template <class Kind, class Options>
Case adam_case(const AdamNumbers& n, bool tensor_lr, bool foreach) {
  Case one;
  // A tensor's rate is a float32.
  AdamNumbers exact = n;
  if (tensor_lr) exact.lr = double(float(n.lr));
  one.make = [=](std::vector<Tensor> params) {
    Options options;
    options.lr = tensor_lr ? Scalar(tensor(n.lr)) : Scalar(n.lr);
    options.betas = {n.beta1, n.beta2};
    options.eps = n.eps;
    options.weight_decay = n.weight_decay;
    options.amsgrad = n.amsgrad;
    options.maximize = n.maximize;
    options.foreach = foreach;
    return make_stepper<Kind>(std::move(params), options);
  };
  one.rule = [exact](Element& x, double grad, int step) {
    adam_rule(exact, x, grad, step);
  };
  one.label = std::string(tensor_lr ? "tensor lr" : "float lr") +
              (n.weight_decay != 0 ? ", weight_decay" : "") +
              (n.amsgrad ? ", amsgrad" : "") +
              (n.maximize ? ", maximize" : "") +
              (foreach ? "" : ", foreach=false");
  return one;
}

const std::vector<std::vector<DType>>& dtype_mixes() {
  static const std::vector<std::vector<DType>> mixes = {
      {DType::float32}, {DType::float64}, {DType::float32, DType::float64}};
  return mixes;
}

std::string name_of_mix(const std::vector<DType>& dtypes) {
  return dtypes.size() > 1 ? ", mixed dtypes"
                           : std::string(", ") + name_of(dtypes[0]);
}

// All dtypes, with and without `foreach`.
template <class Kind, class Options>
Together adam_together(const AdamNumbers& n, bool tensor_lr) {
  Together cases;
  for (const bool foreach : {true, false}) {
    for (const auto& dtypes : dtype_mixes()) {
      cases.push_back(adam_case<Kind, Options>(n, tensor_lr, foreach));
      cases.back().dtypes = dtypes;
      cases.back().label += name_of_mix(dtypes);
    }
  }
  return cases;
}

// The whole product of the options.
template <class Kind, class Options>
std::vector<Together> adam_cases(bool decoupled) {
  std::vector<Together> all;
  AdamNumbers n;
  for (unsigned bits = 0; bits < 16; ++bits) {
    n = {.decoupled = decoupled};
    n.weight_decay = (bits & 1U) != 0 ? 0.1 : 0.0;
    n.amsgrad = (bits & 2U) != 0;
    n.maximize = (bits & 4U) != 0;
    all.push_back(adam_together<Kind, Options>(n, (bits & 8U) != 0));
  }
  // One list alone in its launch, with everything at once.
  for (const bool tensor_lr : {false, true}) {
    all.push_back({adam_case<Kind, Options>(n, tensor_lr, true)});
  }
  // Other betas and eps; below one half lerp takes its other branch.
  for (const double beta1 : {0.0, 0.3, 0.95}) {
    n = {.lr = 0.1, .beta1 = beta1, .beta2 = 0.5, .eps = 1e-2};
    n.decoupled = decoupled;
    all.push_back({adam_case<Kind, Options>(n, false, true)});
    all.back()[0].label += ", beta1 " + std::to_string(beta1);
  }
  return all;
}

// ---- the table: a further optimizer is one more row -------------------------

const std::vector<OptimizerRow>& table() {
  static const std::vector<OptimizerRow> rows = {
      {"Adam",
       {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"},
       adam_cases<Adam, AdamOptions>(false)},
      {"AdamW",
       {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"},
       adam_cases<AdamW, AdamWOptions>(true)},
  };
  return rows;
}

// ---- what must hold for each ------------------------------------------------

constexpr int steps = 3;

// Large enough that eight threads get a share each.
std::vector<Tensor> make_model(const std::vector<DType>& dtypes) {
  static const std::vector<Shape> shapes = {
      {70001}, {}, {0}, {1}, {3, 0, 2}, {7}, {33, 31}, {1031}, {1, 65003}};
  // Drawing takes longer than copying.
  static std::vector<std::pair<std::vector<DType>, std::vector<Tensor>>> made;
  for (const auto& [known, params] : made) {
    if (known == dtypes) return copies(params);
  }
  testing::Random random(17);
  std::vector<Tensor> params;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    params.push_back(
        random_tensor(shapes[i], random, 0, dtypes[i % dtypes.size()]));
  }
  set_random_grads(params, random);
  made.emplace_back(dtypes, params);
  return copies(params);
}

template <class T>
void scale(const Tensor& tensor, T factor) {
  Tensor handle = tensor;
  T* const data = handle.data<T>();
  for (std::int64_t i = 0; i < handle.numel(); ++i) data[i] *= factor;
}

// What the first gradient is multiplied by at a step: the second is so small
// that an average of squares falls, the third points the other way.
double grad_factor(int step) {
  return std::array{1.0, 0x1p-6, -2.0}[std::size_t(step) - 1];
}

// Puts the gradients of the next step in place; all products are exact.
void next_grads(const std::vector<Tensor>& params, int step) {
  if (step == steps) return;
  const double factor = grad_factor(step + 1) / grad_factor(step);
  for (const Tensor& param : params) {
    if (param.dtype() == DType::float32) {
      scale(param.grad(), float(factor));
    } else {
      scale(param.grad(), factor);
    }
  }
}

struct Run {
  std::vector<Tensor> params;
  Stepper optimizer;
};

// Steps that many optimizers make together.
using Steps = std::vector<Stepper>;

void step_all(Steps& optimizers) {
  for (Stepper& optimizer : optimizers) optimizer.step();
}

std::vector<Run> run_steps(const Together& cases, int threads,
                           const std::function<void(Steps&)>& call) {
  std::vector<Run> runs;
  Steps optimizers;
  for (const Case& one : cases) {
    runs.push_back({make_model(one.dtypes), {}});
    runs.back().optimizer = one.make(runs.back().params);
    optimizers.push_back(runs.back().optimizer);
  }
  set_thread_count(threads);
  for (int step = 1; step <= steps; ++step) {
    call(optimizers);
    for (const Run& run : runs) next_grads(run.params, step);
  }
  set_thread_count(0);
  return runs;
}

bool same_runs(const OptimizerRow& row, const Run& a, const Run& b) {
  if (!same_bits(a.params, b.params)) return false;
  for (std::size_t i = 0; i < a.params.size(); ++i) {
    for (const char* name : row.states) {
      const Tensor x = a.optimizer.state(a.params[i], name);
      const Tensor y = b.optimizer.state(b.params[i], name);
      if (x.defined() != y.defined()) return false;
      if (x.defined() && !same_bits(x, y)) return false;
    }
    const Tensor x = a.optimizer.state(a.params[i], "step");
    if (x.item() != steps) return false;
    if (!same_bits(x, b.optimizer.state(b.params[i], "step"))) return false;
  }
  return true;
}

// How far `value` is from `exact`, in units of what the dtype can tell apart
// around numbers of size one. Parameters, gradients and rates are that size or
// smaller.
double distance(double value, double exact, DType dtype) {
  const double unit = dtype == DType::float32 ? 0x1p-24 : 0x1p-53;
  if (std::isnan(value) || std::isnan(exact)) return HUGE_VAL;
  return std::abs(value - exact) / unit;
}

double value_at(const Tensor& tensor, std::size_t i) {
  return tensor.dtype() == DType::float32 ? double(tensor.data<float>()[i])
                                          : tensor.data<double>()[i];
}

// The elements to follow: all of small tensors, some of large ones.
std::vector<std::size_t> followed(const Tensor& tensor) {
  const auto count = std::size_t(tensor.numel());
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < count; i += count > 2000 ? 61 : 1) {
    indices.push_back(i);
  }
  if (count > 0) indices.push_back(count - 1);
  return indices;
}

// Elements of one parameter as the published formulas leave them.
std::vector<Element> follow_rule(const Case& one, const Tensor& param) {
  std::vector<Element> elements;
  for (const std::size_t i : followed(param)) {
    Element element{value_at(param, i), {}};
    const double grad = value_at(param.grad(), i);
    for (int step = 1; step <= steps; ++step) {
      one.rule(element, grad * grad_factor(step), step);
    }
    elements.push_back(element);
  }
  return elements;
}

// The largest distance of a run from the published formulas.
double distance_from_rule(const OptimizerRow& row, const Case& one,
                          const Run& run) {
  const std::vector<Tensor> start = make_model(one.dtypes);
  double worst = 0;
  for (std::size_t t = 0; t < start.size(); ++t) {
    const DType dtype = start[t].dtype();
    const std::vector<Element> exact = follow_rule(one, start[t]);
    const std::vector<std::size_t> at = followed(start[t]);
    for (std::size_t k = 0; k < at.size(); ++k) {
      const double param = value_at(run.params[t], at[k]);
      worst = std::max(worst, distance(param, exact[k].param, dtype));
    }
    for (std::size_t s = 0; s < row.states.size(); ++s) {
      const Tensor state = run.optimizer.state(run.params[t], row.states[s]);
      if (!state.defined()) continue;
      for (std::size_t k = 0; k < at.size(); ++k) {
        const double value = value_at(state, at[k]);
        worst = std::max(worst, distance(value, exact[k].state[s], dtype));
      }
    }
  }
  return worst;
}

void check_same(const OptimizerRow& row, const Together& cases,
                const std::vector<Run>& a, const std::vector<Run>& b) {
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(cases[i].label);
    CHECK(same_runs(row, a[i], b[i]));
  }
}

void check_cases(const OptimizerRow& row, const Together& cases) {
  const std::vector<Run> eager = run_steps(cases, 1, step_all);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(cases[i].label);
    CHECK(distance_from_rule(row, cases[i], eager[i]) < 16);
  }
  for (const Backend backend : {Backend::compiled, Backend::interpreted}) {
    auto compiled = compile(step_all, {.backend = backend});
    for (const int threads : {1, 2, 3, 8}) {
      CAPTURE(threads);
      check_same(row, cases, eager,
                 run_steps(cases, threads, [&](Steps& all) { compiled(all); }));
    }
    CHECK(compiled.counters().launches == 4 * steps);
    CHECK(compiled.counters().compilations == 1);
    CHECK(compiled.counters().recompiles == 0);
  }
  check_same(row, cases, eager, run_steps(cases, 3, step_all));
}

}  // namespace

TEST_CASE("compiled, interpreted and eager agree, and with the formulas") {
  for (const OptimizerRow& row : table()) {
    CAPTURE(row.name);
    for (const Together& cases : row.cases) check_cases(row, cases);
  }
}

TEST_CASE("a NaN or infinite gradient spoils its own element only") {
  for (const OptimizerRow& row : table()) {
    CAPTURE(row.name);
    for (const double bad : {std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity()}) {
      for (const bool compiled : {false, true}) {
        const Case& one = row.cases.front().front();
        const auto params = make_params(mixed_shapes(12), 5);
        const auto clean = copies(params);
        // An element in the middle, and a tensor that is but one.
        Tensor spoilt = params[10].grad();
        spoilt.data<float>()[77] = float(bad);
        Tensor alone = params[1].grad();
        alone.fill_(bad);
        Stepper optimizer = one.make(params);
        Stepper reference = one.make(clean);
        auto step = compile([&] { optimizer.step(); },
                            {.backend = Backend::interpreted});
        for (int i = 0; i < 2; ++i) {
          reference.step();
          if (compiled) {
            step();
          } else {
            optimizer.step();
          }
        }
        CHECK(std::isnan(params[1].item()));
        CHECK(std::isnan(params[10].to_vector()[77]));
        Tensor number = params[1];
        number.copy_(clean[1]);
        Tensor repaired = params[10];
        repaired.data<float>()[77] = clean[10].data<float>()[77];
        CHECK(same_bits(params, clean));
        CHECK(optimizer.state(params[1], "step").item() == 2);
      }
    }
  }
}

TEST_CASE("under a gradient of zero nothing moves, and nothing is NaN") {
  for (const OptimizerRow& row : table()) {
    CAPTURE(row.name);
    for (const Together& cases : row.cases) {
      for (const Case& one : cases) {
        CAPTURE(one.label);
        Tensor param = zeros({5}, one.dtypes.front());
        param.set_grad(zeros({5}, one.dtypes.front()));
        Stepper optimizer = one.make({param});
        optimizer.step();
        CHECK(param.to_vector() == std::vector<double>(5, 0.0));
      }
    }
  }
}
