// Adafactor, which keeps averages of rows and columns, against plain loops in
// long double; adafactor_states_test has torch.
#include "fusebook/optim/adafactor.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/support/error.h"
#include "support/step_testing.h"
#include "support/thread_count.h"

using namespace fuse;
using namespace step_testing;
using testing::contains;
using testing::message_of;
using testing::Random;
using testing::Threads;

namespace {

using Params = std::vector<Tensor>;
using Reals = std::vector<long double>;

// ---- the formulas -----------------------------------------------------------

// A tensor as matrices of one size, or as one vector, and what is kept for it.
struct Exact {
  Reals param;
  bool factored = false;
  std::size_t matrices = 1;
  std::size_t height = 1;
  std::size_t width = 1;
  Reals rows;
  Reals columns;
  Reals squares;
  int steps = 0;
};

Exact exact_of(const Tensor& param) {
  Exact x;
  const std::vector<double> values = param.to_vector();
  x.param.assign(values.begin(), values.end());
  const Shape& shape = param.shape();
  x.factored = shape.size() > 1;
  x.width = values.size();
  if (x.factored) {
    x.height = std::size_t(shape[shape.size() - 2]);
    x.width = std::size_t(shape[shape.size() - 1]);
    const std::size_t of_one = x.height * x.width;
    x.matrices = of_one == 0 ? 0 : values.size() / of_one;
  }
  x.rows.assign(x.matrices * x.height, 0);
  x.columns.assign(x.matrices * x.width, 0);
  x.squares.assign(values.size(), 0);
  return x;
}

long double root_mean_square(const Reals& values) {
  long double sum = 0;
  for (const long double x : values) sum += x * x;
  return std::sqrt(sum / (long double)(values.size()));
}

// What divides each gradient squared: an average of it, or what its row and its
// column say.
Reals divisors(Exact& x, const Reals& g, long double weight, long double eps) {
  Reals result(g.size());
  if (!x.factored) {
    for (std::size_t i = 0; i < g.size(); ++i) {
      x.squares[i] += weight * (g[i] * g[i] - x.squares[i]);
      result[i] = x.squares[i];
    }
    return result;
  }
  for (std::size_t m = 0; m < x.matrices; ++m) {
    const auto at = [&](std::size_t i, std::size_t j) {
      return (m * x.height + i) * x.width + j;
    };
    long double* const rows = x.rows.data() + m * x.height;
    long double* const columns = x.columns.data() + m * x.width;
    for (std::size_t i = 0; i < x.height; ++i) {
      long double sum = 0;
      for (std::size_t j = 0; j < x.width; ++j)
        sum += g[at(i, j)] * g[at(i, j)];
      rows[i] += weight * (sum / (long double)(x.width) - rows[i]);
    }
    for (std::size_t j = 0; j < x.width; ++j) {
      long double sum = 0;
      for (std::size_t i = 0; i < x.height; ++i) {
        sum += g[at(i, j)] * g[at(i, j)];
      }
      columns[j] += weight * (sum / (long double)(x.height) - columns[j]);
    }
    long double mean = 0;
    for (std::size_t i = 0; i < x.height; ++i) mean += rows[i];
    mean = std::max(mean / (long double)(x.height), eps);
    for (std::size_t i = 0; i < x.height; ++i) {
      for (std::size_t j = 0; j < x.width; ++j) {
        result[at(i, j)] = rows[i] * columns[j] / mean;
      }
    }
  }
  return result;
}

void step_by_hand(const AdafactorOptions& o, Exact& x, const Reals& grads,
                  long double dtype_eps) {
  const long double eps =
      o.eps[0].value() < 0 ? dtype_eps : (long double)(o.eps[0].value());
  const long double lr = o.lr.value();
  ++x.steps;
  const long double weight =
      std::pow((long double)(x.steps), (long double)(o.beta2_decay.value()));
  const long double rate = std::min(lr, 1 / std::sqrt((long double)(x.steps)));
  const long double size =
      std::max((long double)(o.eps[1].value()), root_mean_square(x.param));
  const Reals below = divisors(x, grads, weight, eps);
  Reals updates(grads.size());
  for (std::size_t i = 0; i < grads.size(); ++i) {
    updates[i] = (o.maximize ? -grads[i] : grads[i]) /
                 std::sqrt(std::max(below[i], eps * eps));
  }
  const long double longer =
      std::max(1.0L, root_mean_square(updates) / o.d.value());
  for (std::size_t i = 0; i < grads.size(); ++i) {
    x.param[i] = x.param[i] * (1 - lr * o.weight_decay.value()) -
                 rate * size / longer * updates[i];
  }
}

// ---- training ---------------------------------------------------------------

const std::vector<Shape> small_shapes = {
    {7}, {}, {0}, {5, 3}, {1, 1}, {3, 0}, {2, 3, 4}, {130, 3}, {2, 2, 3, 3}};

void set_grads(const Params& params, int step) {
  Random random(std::uint64_t(step) + 10);
  for (const Tensor& param : params) {
    assign(param.grad(),
           random_tensor(param.shape(), random, 0, DType::float64).to_vector());
  }
}

double furthest(const Params& params, const std::vector<Exact>& exact) {
  double worst = 0;
  for (std::size_t p = 0; p < params.size(); ++p) {
    const std::vector<double> values = params[p].to_vector();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double off = std::abs(double(values[i] - exact[p].param[i]));
      worst = std::isfinite(off) ? std::max(worst, off) : 1e300;
    }
  }
  return worst;
}

double distance_after(const AdafactorOptions& options, DType dtype, int steps) {
  const Params params = make_params(small_shapes, 3, dtype);
  std::vector<Exact> exact;
  for (const Tensor& param : params) exact.push_back(exact_of(param));
  Adafactor adafactor(params, options);
  const long double eps = dtype == DType::float64 ? 0x1p-52L : 0x1p-23L;
  Random random(7);
  for (int n = 0; n < steps; ++n) {
    set_grads(params, n);
    const bool skipped = random.chance(0.1);
    adafactor.step({.skip = skipped ? 1.0 : 0.0});
    for (std::size_t p = 0; p < params.size() && !skipped; ++p) {
      const std::vector<double> grads = params[p].grad().to_vector();
      step_by_hand(options, exact[p], Reals(grads.begin(), grads.end()), eps);
    }
  }
  CHECK(adafactor.state(params[0], "step").item() == exact[0].steps);
  return furthest(params, exact);
}

AdafactorOptions random_options(Random& random) {
  AdafactorOptions o;
  o.lr = random.uniform(1e-3, 0.3);
  o.beta2_decay = random.chance(0.2) ? 0.0 : -random.uniform(0.3, 1);
  if (random.chance(0.5)) o.eps[0] = random.chance(0.5) ? 0.3 : 1e-6;
  if (random.chance(0.5)) o.eps[1] = random.uniform(0, 2);
  o.d = random.chance(0.5) ? 1.0 : random.uniform(1, 1.5);
  o.weight_decay = random.chance(0.5) ? 0.0 : random.uniform(0, 0.1);
  o.maximize = random.chance(0.3);
  return o;
}

}  // namespace

TEST_CASE("steps with random options follow plain loops") {
  Random random(1);
  for (int trial = 0; trial < 8; ++trial) {
    CAPTURE(trial);
    const AdafactorOptions options = random_options(random);
    CHECK(distance_after(options, DType::float64, 200) < 1e-9);
    CHECK(distance_after(options, DType::float32, 20) < 1e-3);
  }
}

TEST_CASE("the bits are the same on every way and any number of threads") {
  const std::vector<Shape> shapes = {{30001}, {},      {0},  {130, 257},
                                     {33, 1}, {1, 33}, {64}, {2, 3, 70, 2}};
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    const Params start = make_params(shapes, 7, dtype);
    const Params eager = copies(start);
    const AdafactorOptions options{.lr = 0.1, .weight_decay = 0.01};
    {
      const Threads one(1);
      Adafactor by_hand(eager, options);
      for (int n = 0; n < 4; ++n) {
        set_grads(eager, n);
        by_hand.step();
      }
    }
    for (const Backend backend :
         {Backend::compiled, Backend::interpreted, Backend::simulated}) {
      for (const int threads : {1, 2, 3, 7, 64}) {
        if (backend == Backend::simulated && threads > 1) continue;
        CAPTURE(int(backend));
        CAPTURE(threads);
        const Threads many(threads);
        const Params fused = copies(start);
        Adafactor adafactor(fused, options);
        auto step = compile([&] { adafactor.step(); }, {.backend = backend});
        for (int n = 0; n < 4; ++n) {
          set_grads(fused, n);
          step();
        }
        REQUIRE(same_bits(fused, eager));
        CHECK(step.counters().recompiles == 0);
      }
    }
  }
}

TEST_CASE("parameters that a step puts together from their halves, or rounds") {
  for (const bool split : {false, true}) {
    CAPTURE(split);
    const Params eagerly =
        make_params({{130}, {}, {7}, {13, 20}}, 5, DType::bfloat16);
    const Params compiled = copies(eagerly);
    Params exact;
    for (const Tensor& each : eagerly) exact.push_back(each.to(DType::float32));
    const AdafactorOptions options{
        .lr = 0.1, .eps = {0x1p-23, 1e-3}, .weight_decay = 0.01};
    Adafactor eager(eagerly, options);
    Adafactor fused(compiled, options);
    Adafactor wide(exact, options);
    for (Adafactor* each : {&eager, &fused}) {
      each->use_split_masters(split);
      each->use_stochastic_rounding(!split, 3);
    }
    auto step = compile([&] { fused.step(); });
    for (int n = 0; n < 4; ++n) {
      set_grads(eagerly, n);
      set_grads(compiled, n);
      for (std::size_t i = 0; i < exact.size(); ++i) {
        exact[i].set_grad(eagerly[i].grad().to(DType::float32));
      }
      eager.step();
      step();
      wide.step();
      REQUIRE(same_bits(compiled, eagerly));
    }
    for (std::size_t i = 0; i < exact.size(); ++i) {
      CHECK(allclose(eagerly[i].to(DType::float32), exact[i], 0,
                     split ? 0.005 : 0.05));
    }
  }
}

TEST_CASE("matrices take four launches and a break, vectors one launch") {
  const Params matrices = make_params({{130, 20}, {4, 4}, {2, 3, 3}}, 1);
  const Params vectors = make_params({{130}, {}, {3}}, 1);
  const auto counted = [](const Params& params, int steps) {
    Adafactor adafactor(params);
    auto step = compile([&] { adafactor.step(); });
    for (int n = 0; n < steps; ++n) step();
    return step.counters();
  };
  const Counters of_matrices = counted(matrices, 3);
  CHECK(of_matrices.launches == 3 * 4);
  CHECK(of_matrices.graph_breaks == 3);
  CHECK(of_matrices.compilations == 2);
  const Counters of_vectors = counted(vectors, 3);
  CHECK(of_vectors.launches == 3);
  CHECK(of_vectors.graph_breaks == 0);
  CHECK(of_vectors.compilations == 1);
  CHECK(of_vectors.reduction_phases == 3);
}

TEST_CASE("after the first step nothing moves to other memory") {
  const Params params = make_params({{130, 20}, {4}}, 1);
  Adafactor adafactor(params);
  auto step = compile([&] { adafactor.step(); });
  for (int n = 0; n < 2; ++n) step();
  const Counters before = step.counters();
  for (int n = 0; n < 3; ++n) step();
  CHECK((step.counters() - before).uploads == 0);
  CHECK((step.counters() - before).compilations == 0);
}

TEST_CASE("fullgraph refuses matrices, and nothing has changed") {
  const Params params = make_params({{3, 4}, {3}}, 4);
  const Params before = copies(params);
  Adafactor adafactor(params);
  auto step = compile([&] { adafactor.step(); }, {.fullgraph = true});
  CHECK(contains(message_of<Error>([&] { step(); }), "graph break"));
  CHECK(same_bits(params, before));
  CHECK(adafactor.steps() == 0);
  CHECK(!adafactor.state(params[0], "row_var").defined());
}

TEST_CASE("a skipped step changes nothing") {
  const Params params = make_params(small_shapes, 6);
  const Params before = copies(params);
  Adafactor adafactor(params);
  auto step = compile([&] { adafactor.step({.skip = 1.0}); });
  step();
  CHECK(same_bits(params, before));
  CHECK(adafactor.state(params[3], "step").item() == 0);
  const auto kept = adafactor.state(params[3], "row_var").to_vector();
  CHECK(kept == std::vector<double>(5, 0.0));
}

TEST_CASE("groups have numbers of their own, and gradients may be scaled") {
  const Params joined = make_params({{5, 3}, {4}}, 4, DType::float64);
  const Params apart = copies(joined);
  Adafactor both(std::vector<Adafactor::Group>{{{joined[0]}, {.lr = 0.1}},
                                               {{joined[1]}, {.lr = 0.2}}});
  Adafactor first({apart[0]}, {.lr = 0.1});
  Adafactor second({apart[1]}, {.lr = 0.2});
  auto step = compile([&] { both.step({.grad_scale = 4.0}); });
  for (int n = 0; n < 3; ++n) {
    set_grads(joined, n);
    set_grads(apart, n);
    for (const Tensor& each : joined) {
      std::vector<double> grads = each.grad().to_vector();
      for (double& grad : grads) grad *= 4;
      assign(each.grad(), grads);
    }
    step();
    first.step();
    second.step();
  }
  CHECK(same_bits(joined, apart));
}
