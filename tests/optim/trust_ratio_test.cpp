// LAMB and LARS, whose steps are as long as norms of whole tensors say.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/foreach/reductions.h"
#include "fusebook/optim/all.h"
#include "fusebook/runtime/parallel.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;
using testing::Random;

namespace {

using Params = std::vector<Tensor>;
using Reals = std::vector<long double>;

constexpr double infinity = std::numeric_limits<double>::infinity();
const double not_a_number = std::numeric_limits<double>::quiet_NaN();

// ---- the papers' formulas, in long double -----------------------------------

long double norm_of(const Reals& values) {
  long double sum = 0;
  for (const long double x : values) sum += x * x;
  return std::sqrt(sum);
}

// A tensor, and what is kept for it.
struct Exact {
  Reals param;
  Reals first;
  Reals second;
  int steps = 0;
};

Exact exact_of(const Tensor& param) {
  const std::vector<double> values = param.to_vector();
  const Reals none(values.size(), 0);
  return {Reals(values.begin(), values.end()), none, none};
}

void step_by_hand(const LAMBOptions& o, Exact& x, const Reals& grads) {
  const long double beta1 = o.betas[0].value();
  const long double beta2 = o.betas[1].value();
  ++x.steps;
  const long double correction1 =
      o.bias_correction ? 1 - std::pow(beta1, x.steps) : 1;
  const long double correction2 =
      o.bias_correction ? 1 - std::pow(beta2, x.steps) : 1;
  Reals directions;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const long double g = o.maximize ? -grads[i] : grads[i];
    x.first[i] = beta1 * x.first[i] + (1 - beta1) * g;
    x.second[i] = beta2 * x.second[i] + (1 - beta2) * g * g;
    const long double size = std::sqrt(x.second[i] / correction2);
    directions.push_back(x.first[i] / correction1 / (size + o.eps.value()) +
                         o.weight_decay.value() * x.param[i]);
  }
  const long double norm = norm_of(x.param);
  const long double length = norm_of(directions);
  const long double ratio = norm == 0 || length == 0 ? 1 : norm / length;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    x.param[i] -= o.lr.value() * ratio * directions[i];
  }
}

void step_by_hand(const LARSOptions& o, Exact& x, const Reals& grads) {
  ++x.steps;
  const long double decay = o.weight_decay.value();
  const long double momentum = o.momentum.value();
  const long double norm = norm_of(x.param);
  const long double grad_norm = norm_of(grads);
  const long double ratio =
      norm == 0 || grad_norm == 0
          ? 1
          : o.trust_coefficient.value() * norm /
                (grad_norm + decay * norm + o.eps.value());
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const long double g = o.maximize ? -grads[i] : grads[i];
    const long double direction = ratio * (g + decay * x.param[i]);
    x.first[i] = momentum * x.first[i] + direction;
    const long double way =
        o.nesterov ? direction + momentum * x.first[i] : x.first[i];
    x.param[i] -= o.lr.value() * way;
  }
}

// ---- random options ---------------------------------------------------------

LAMBOptions random_options(Random& random, LAMBOptions o) {
  o.lr = random.uniform(1e-3, 0.05);
  o.betas = {random.uniform(0.3, 0.95), random.uniform(0.8, 0.999)};
  o.eps = random.chance(0.5) ? 1e-6 : 1e-2;
  o.weight_decay = random.chance(0.3) ? 0.0 : random.uniform(0, 0.1);
  o.bias_correction = random.chance(0.5);
  o.maximize = random.chance(0.3);
  return o;
}

LARSOptions random_options(Random& random, LARSOptions o) {
  o.lr = random.uniform(0.1, 1);
  o.momentum = random.chance(0.3) ? 0.0 : random.uniform(0.5, 0.9);
  o.weight_decay = random.chance(0.3) ? 0.0 : random.uniform(0, 0.1);
  o.trust_coefficient = random.uniform(1e-3, 0.02);
  o.eps = random.chance(0.5) ? 1e-8 : 1e-2;
  o.nesterov = o.momentum.value() > 0 && random.chance(0.5);
  o.maximize = random.chance(0.3);
  return o;
}

// ---- training ---------------------------------------------------------------

const std::vector<Shape> small_shapes = {{7}, {}, {0}, {1}, {5, 13}, {300}};

void set_grads(const Params& params, int step, bool bad) {
  Random random(std::uint64_t(step) + 10);
  for (Tensor param : params) {
    std::vector<double> values =
        random_tensor(param.shape(), random, 0, param.dtype()).to_vector();
    if (bad && !values.empty()) values.back() = infinity;
    assign(param.grad(), values);
  }
}

Reals grads_of(const Tensor& param) {
  const std::vector<double> values = param.grad().to_vector();
  return {values.begin(), values.end()};
}

double furthest(const Params& params, const std::vector<Exact>& exact) {
  double worst = 0;
  for (std::size_t p = 0; p < params.size(); ++p) {
    const std::vector<double> values = params[p].to_vector();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const long double wanted = exact[p].param[i];
      const double off = double(std::abs(values[i] - wanted) /
                                std::max(1.0L, std::abs(wanted)));
      worst = std::isfinite(off) ? std::max(worst, off) : infinity;
    }
  }
  return worst;
}

// Steps of which some have an infinite gradient, and are skipped.
template <class Kind, class Options>
double distance_after(const Options& options, int steps, std::uint64_t seed) {
  const Params params = make_params(small_shapes, seed, DType::float64);
  std::vector<Exact> exact;
  for (const Tensor& param : params) exact.push_back(exact_of(param));
  Kind optimizer(params, options);
  auto step = compile(
      [&] {
        const std::vector<TensorList> grads = optimizer.gradient_lists();
        optimizer.step({.skip = 1.0 - all_finite(grads[0])});
      },
      {.fullgraph = true, .backend = Backend::interpreted});
  Random random(seed);
  for (int n = 0; n < steps; ++n) {
    const bool bad = random.chance(0.1);
    set_grads(params, n, bad);
    step();
    for (std::size_t p = 0; p < params.size() && !bad; ++p) {
      step_by_hand(options, exact[p], grads_of(params[p]));
    }
  }
  CHECK(step.counters().launches == steps);
  CHECK(optimizer.state(params[0], "step").item() == exact[0].steps);
  return furthest(params, exact);
}

template <class Visit>
void for_both(Visit visit) {
  visit.template operator()<LAMB>(LAMBOptions{.weight_decay = 0.1});
  visit.template operator()<LARS>(
      LARSOptions{.weight_decay = 0.1, .trust_coefficient = 0.02});
}

}  // namespace

TEST_CASE("200 steps with random options follow the papers") {
  for_both([]<class Kind, class Options>(const Options& options) {
    Random random(3);
    for (int trial = 0; trial < 12; ++trial) {
      CAPTURE(trial);
      const Options drawn = random_options(random, options);
      CHECK(distance_after<Kind>(drawn, 200, std::uint64_t(trial)) < 1e-11);
    }
  });
}

TEST_CASE("the bits are the same on every way and any number of threads") {
  const std::vector<Shape> shapes = {{30001}, {}, {0}, {1}, {33, 31}, {8192}};
  for_both([&]<class Kind, class Options>(const Options& options) {
    for (const DType dtype : {DType::float32, DType::bfloat16}) {
      const Params start = make_params(shapes, 7, dtype);
      set_thread_count(1);
      const Params eager = copies(start);
      Kind by_hand(eager, options);
      for (int n = 0; n < 4; ++n) {
        set_grads(eager, n, false);
        by_hand.step();
      }
      for (const Backend backend :
           {Backend::compiled, Backend::interpreted, Backend::simulated}) {
        for (const int threads : {1, 2, 3, 7, 64}) {
          if (backend == Backend::simulated && threads > 1) continue;
          CAPTURE(int(backend));
          CAPTURE(threads);
          set_thread_count(threads);
          const Params fused = copies(start);
          Kind optimizer(fused, options);
          auto step = compile([&] { optimizer.step(); },
                              {.fullgraph = true, .backend = backend});
          for (int n = 0; n < 4; ++n) {
            set_grads(fused, n, false);
            step();
          }
          CHECK(same_bits(fused, eager));
          CHECK(step.counters().compilations == 1);
          CHECK(step.counters().launches == 4);
        }
      }
    }
    set_thread_count(0);
  });
}

TEST_CASE("norms and step are one launch, with nothing read in vain") {
  for_both([]<class Kind, class Options>(const Options& options) {
    const Params params = make_params({{300}, {9000}, {1}}, 5, DType::float32);
    Kind optimizer(params, options);
    auto step = compile([&] { optimizer.step(); }, {.fullgraph = true});
    for (int n = 0; n < 3; ++n) step();
    const Counters counters = step.counters();
    CHECK(counters.launches == 3);
    CHECK(counters.reduction_phases == 3);
    CHECK(counters.compilations == 1);
    CHECK(counters.graph_breaks == 0);
    // Norms read what the step reads; nothing is stored before they are known.
    // Of each tensor two norms are stored and read, and its count; LAMB needs
    // that for the norm as well.
    const bool lamb = std::is_same_v<Kind, LAMB>;
    const int bytes = lamb ? 16 + 28 : 8 + 20;
    const int of_tensor = 4 * 8 + 2 * 8 + (lamb ? 8 : 0);
    CHECK(counters.bytes_moved == 3 * (9301 * bytes + 3 * of_tensor));
  });
}

TEST_CASE("a step of LAMB is as long as its rate says of each tensor") {
  const Params params = make_params({{300}, {9000}, {1}}, 5, DType::float64);
  std::vector<Reals> before;
  for (const Tensor& each : params) before.push_back(exact_of(each).param);
  LAMB lamb(params, {.lr = 0.125});
  lamb.step();
  for (std::size_t p = 0; p < params.size(); ++p) {
    Reals moved = exact_of(params[p]).param;
    for (std::size_t i = 0; i < moved.size(); ++i) moved[i] -= before[p][i];
    CHECK(double(norm_of(moved) / norm_of(before[p])) ==
          doctest::Approx(0.125).epsilon(1e-12));
  }
}

TEST_CASE("how large gradients are does not matter") {
  const auto check = []<class Kind, class Options>(const Options& options) {
    const Params params = make_params(small_shapes, 9, DType::float32);
    const Params others = copies(params);
    for (Tensor param : others) {
      std::vector<double> values = param.grad().to_vector();
      for (double& value : values) value *= 1024;
      assign(param.grad(), values);
    }
    Kind a(params, options);
    Kind b(others, options);
    for (int n = 0; n < 3; ++n) {
      a.step();
      b.step();
    }
    CHECK(same_bits(params, others));
  };
  check.operator()<LAMB>(LAMBOptions{.eps = 0.0});
  check.operator()<LARS>(LARSOptions{.eps = 0.0});
}

TEST_CASE("where a norm is 0 the ratio is 1") {
  for (const Backend backend : {Backend::compiled, Backend::interpreted}) {
    const auto one_step = [&]<class Kind, class Options>(const Options& options,
                                                         double param,
                                                         double grad) {
      const Params params = {full({3}, param, DType::float64)};
      Tensor(params[0]).set_grad(full({3}, grad, DType::float64));
      Kind optimizer(params, options);
      auto step = compile([&] { optimizer.step(); }, {.backend = backend});
      step();
      return params[0].to_vector();
    };
    const std::vector<double> half(3, -0.5);
    const std::vector<double> one(3, 1.0);
    // The direction of a first step is 1 but for eps.
    const LAMBOptions lamb{.lr = 0.5, .eps = 0.0, .weight_decay = 0.0};
    CHECK(one_step.operator()<LAMB>(lamb, 0.0, 2.0) == half);
    const LAMBOptions safe{.lr = 0.5, .weight_decay = 0.0};
    CHECK(one_step.operator()<LAMB>(safe, 1.0, 0.0) == one);
    const LARSOptions lars{.lr = 0.5, .eps = 0.0};
    CHECK(one_step.operator()<LARS>(lars, 0.0, 1.0) == half);
    CHECK(one_step.operator()<LARS>(lars, 1.0, 0.0) == one);
    // Without a gradient, the decay is that of SGD.
    const LARSOptions decay{.lr = 0.5, .weight_decay = 0.25};
    CHECK(one_step.operator()<LARS>(decay, 1.0, 0.0) ==
          std::vector<double>(3, 0.875));
  }
}

TEST_CASE("a NaN spreads over its tensor, and no further") {
  for_both([]<class Kind, class Options>(const Options& options) {
    const Params clean = make_params({{40}, {7}}, 6, DType::float32);
    const Params fused = copies(clean);
    const Params eager = copies(clean);
    for (const Params& params : {fused, eager}) {
      params[0].grad().template data<float>()[3] = float(not_a_number);
    }
    Kind good(clean, options);
    Kind bad(eager, options);
    Kind compiled(fused, options);
    auto step = compile([&] { compiled.step(); }, {.fullgraph = true});
    for (int n = 0; n < 3; ++n) {
      good.step();
      bad.step();
      step();
    }
    CHECK(bitwise_equal(eager, fused));
    CHECK(same_bits(fused[1], clean[1]));
    for (const double x : fused[0].to_vector()) CHECK(std::isnan(x));
  });
}

TEST_CASE("LARS does not move along an infinite gradient") {
  const Params params = make_params({{5}}, 6, DType::float32);
  const std::vector<double> before = params[0].to_vector();
  params[0].grad().data<float>()[3] = float(infinity);
  LARS lars(params);
  lars.step();
  const std::vector<double> after = params[0].to_vector();
  for (std::size_t i = 0; i < after.size(); ++i) {
    CHECK(std::isnan(after[i]) == (i == 3));
    if (i != 3) CHECK(after[i] == before[i]);
  }
}

TEST_CASE("a skipped step changes nothing") {
  for_both([]<class Kind, class Options>(const Options& options) {
    const Params params = make_params(small_shapes, 6, DType::float32);
    const Params before = copies(params);
    Kind optimizer(params, options);
    auto step =
        compile([&] { optimizer.step({.skip = 1.0}); }, {.fullgraph = true});
    step();
    CHECK(same_bits(params, before));
    CHECK(optimizer.state(params[0], "step").item() == 0);
  });
}

TEST_CASE("parameters without gradients, or without elements, are no matter") {
  for_both([]<class Kind, class Options>(const Options& options) {
    const Params none = {full({3}, 1.0)};
    Kind idle(none, options);
    auto rest = compile([&] { idle.step(); }, {.fullgraph = true});
    rest();
    CHECK(rest.counters().launches == 0);
    CHECK(none[0].to_vector() == std::vector<double>(3, 1.0));
    const Params empty = make_params({{0}, {3, 0}}, 1, DType::float32);
    Kind optimizer(empty, options);
    auto step = compile([&] { optimizer.step(); }, {.fullgraph = true});
    step();
    CHECK(optimizer.state(empty[0], "step").item() == 1);
  });
}
