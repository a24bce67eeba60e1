// Muon, whose steps multiply matrices, against plain loops in double.
#include "fusebook/optim_products/muon.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/checkpoint/checkpoint.h"
#include "fusebook/compile/compile.h"
#include "fusebook/jit/scratch_directory.h"
#include "fusebook/runtime/parallel.h"
#include "fusebook/support/error.h"
#include "support/fake_cublas.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;
using testing::contains;
using testing::fake;
using testing::message_of;
using testing::Random;
using testing::Replaced;

namespace {

using Params = std::vector<Tensor>;

// ---- the formulas -----------------------------------------------------------

struct Matrix {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<double> values;

  double& at(std::size_t i, std::size_t j) { return values[i * columns + j]; }
  double at(std::size_t i, std::size_t j) const {
    return values[i * columns + j];
  }
};

Matrix matrix_of(const Tensor& tensor) {
  return {std::size_t(tensor.shape()[0]), std::size_t(tensor.shape()[1]),
          tensor.to_vector()};
}

Matrix transposed(const Matrix& m) {
  Matrix result{m.columns, m.rows, std::vector<double>(m.values.size())};
  for (std::size_t i = 0; i < m.rows; ++i) {
    for (std::size_t j = 0; j < m.columns; ++j) result.at(j, i) = m.at(i, j);
  }
  return result;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix result{a.rows, b.columns, std::vector<double>(a.rows * b.columns)};
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < b.columns; ++j) {
      for (std::size_t k = 0; k < a.columns; ++k) {
        result.at(i, j) += a.at(i, k) * b.at(k, j);
      }
    }
  }
  return result;
}

// x a + y b, element by element.
Matrix sum(const Matrix& x, double a, const Matrix& y, double b) {
  Matrix result = x;
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    result.values[i] = a * x.values[i] + b * y.values[i];
  }
  return result;
}

// torch's _zeropower_via_newtonschulz.
Matrix orthogonalized(const MuonOptions& o, Matrix x) {
  const bool tall = x.rows > x.columns;
  if (tall) x = transposed(x);
  double squares = 0;
  for (const double value : x.values) squares += value * value;
  const double norm = std::max(std::sqrt(squares), o.eps.value());
  for (double& value : x.values) value /= norm;
  for (int step = 0; step < o.ns_steps; ++step) {
    const Matrix gram = product(x, transposed(x));
    const Matrix factor =
        sum(gram, o.ns_coefficients[1].value(), product(gram, gram),
            o.ns_coefficients[2].value());
    x = sum(x, o.ns_coefficients[0].value(), product(factor, x), 1);
  }
  return tall ? transposed(x) : x;
}

// A matrix, and what is kept for it.
struct Exact {
  Matrix param;
  Matrix average;
};

Exact exact_of(const Tensor& param) {
  Exact exact{matrix_of(param), matrix_of(param)};
  std::fill(exact.average.values.begin(), exact.average.values.end(), 0.0);
  return exact;
}

void step_by_hand(const MuonOptions& o, Exact& x, const Matrix& grad) {
  const double momentum = o.momentum.value();
  x.average = sum(x.average, momentum, grad, 1 - momentum);
  const Matrix way =
      o.nesterov ? sum(grad, 1 - momentum, x.average, momentum) : x.average;
  const auto rows = double(grad.rows);
  const auto columns = double(grad.columns);
  double ratio = std::sqrt(rows / columns);
  if (o.adjust_lr_fn == "original") ratio = std::max(ratio, 1.0);
  if (o.adjust_lr_fn == "match_rms_adamw") {
    ratio = 0.2 * std::sqrt(std::max(rows, columns));
  }
  const double lr = o.lr.value();
  x.param = sum(x.param, 1 - lr * o.weight_decay.value(),
                orthogonalized(o, way), -lr * ratio);
}

// ---- training ---------------------------------------------------------------

const std::vector<Shape> shapes = {{4, 7}, {7, 4}, {5, 5},  {1, 3},
                                   {3, 1}, {0, 3}, {33, 20}};

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
      const double off = std::abs(values[i] - exact[p].param.values[i]);
      worst = std::isfinite(off) ? std::max(worst, off) : 1e300;
    }
  }
  return worst;
}

double distance_after(const MuonOptions& options, DType dtype, int steps) {
  const Params params = make_params(shapes, 3, dtype);
  std::vector<Exact> exact;
  for (const Tensor& param : params) exact.push_back(exact_of(param));
  Muon muon(params, options);
  for (int n = 0; n < steps; ++n) {
    set_grads(params, n);
    muon.step();
    for (std::size_t p = 0; p < params.size(); ++p) {
      step_by_hand(options, exact[p], matrix_of(params[p].grad()));
    }
  }
  return furthest(params, exact);
}

MuonOptions random_options(Random& random) {
  MuonOptions o;
  o.lr = random.uniform(1e-3, 0.1);
  o.weight_decay = random.chance(0.3) ? 0.0 : random.uniform(0, 0.2);
  o.momentum = random.uniform(0, 0.98);
  o.nesterov = random.chance(0.5);
  o.ns_steps = random.below(7);
  o.eps = random.chance(0.5) ? 1e-7 : 3.0;
  if (random.chance(0.3)) o.ns_coefficients = {2.0, -1.5, 0.5};
  o.adjust_lr_fn = random.pick(std::vector<std::string>{
      "original", "match_rms_adamw", "spectral_unclamped"});
  return o;
}

std::string refusal(const MuonOptions& options) {
  return message_of<Error>([&] { const Muon muon({zeros({2, 2})}, options); });
}

}  // namespace

TEST_CASE("steps with random options follow plain loops") {
  Random random(1);
  for (int trial = 0; trial < 20; ++trial) {
    CAPTURE(trial);
    const MuonOptions options = random_options(random);
    CHECK(distance_after(options, DType::float64, 12) < 1e-10);
    CHECK(distance_after(options, DType::float32, 12) < 1e-3);
  }
}

TEST_CASE("a step goes as far along each singular vector") {
  // Columns of a matrix with orthonormal ones, of these lengths.
  const std::vector<double> lengths = {8, 4, 2, 1};
  const std::vector<double> signs = {1, 1, 1,  1,  1, -1, 1,  -1,
                                     1, 1, -1, -1, 1, -1, -1, 1};
  const MuonOptions options{.lr = 1.0, .weight_decay = 0.0, .momentum = 0.0};
  const Tensor param = zeros({4, 4}, DType::float64);
  Tensor(param).set_grad(zeros({4, 4}, DType::float64));
  std::vector<double> grad;
  for (std::size_t i = 0; i < 16; ++i) {
    grad.push_back(signs[i] / 2 * lengths[i % 4]);
  }
  assign(param.grad(), grad);
  Muon({param}, options).step();
  const std::vector<double> moved = param.to_vector();
  for (std::size_t j = 0; j < 4; ++j) {
    // The iteration on one number.
    double s = lengths[j] / std::sqrt(64 + 16 + 4 + 1.0);
    for (int step = 0; step < 5; ++step) {
      s = 3.4445 * s - 4.7750 * std::pow(s, 3) + 2.0315 * std::pow(s, 5);
    }
    CHECK(s > 0.6);
    CHECK(s < 1.3);
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(moved[i * 4 + j] ==
            doctest::Approx(-s * signs[i * 4 + j] / 2).epsilon(1e-12));
    }
  }
}

TEST_CASE("the rate of a matrix depends on its shape") {
  const auto moved = [](const Shape& shape, const std::string& adjust) {
    const Tensor param = zeros(shape, DType::float64);
    Tensor(param).set_grad(full(shape, 1, DType::float64));
    MuonOptions o{.lr = 0.5, .weight_decay = 0.0, .ns_steps = 0};
    o.adjust_lr_fn = adjust;
    Muon({param}, o).step();
    // Each element of the direction is 1 / sqrt(numel).
    return -param.to_vector()[0] * std::sqrt(double(param.numel()));
  };
  CHECK(moved({2, 8}, "original") == doctest::Approx(0.5));
  CHECK(moved({8, 2}, "original") == doctest::Approx(1.0));
  CHECK(moved({2, 8}, "spectral_unclamped") == doctest::Approx(0.25));
  CHECK(moved({8, 2}, "spectral_unclamped") == doctest::Approx(1.0));
  CHECK(moved({2, 16}, "match_rms_adamw") == doctest::Approx(0.4));
  CHECK(moved({16, 2}, "match_rms_adamw") == doctest::Approx(0.4));
}

TEST_CASE("products aside, a step is a launch for each of the iteration") {
  for (const Backend backend :
       {Backend::compiled, Backend::interpreted, Backend::simulated}) {
    for (const int ns_steps : {0, 1, 5}) {
      CAPTURE(ns_steps);
      const MuonOptions options{.lr = 0.1, .ns_steps = ns_steps};
      const Params eager = make_params(shapes, 4);
      const Params fused = copies(eager);
      Muon by_hand(eager, options);
      Muon muon(fused, options);
      auto step = compile([&] { muon.step(); }, {.backend = backend});
      for (int n = 0; n < 3; ++n) {
        set_grads(eager, n);
        set_grads(fused, n);
        by_hand.step();
        step();
        REQUIRE(same_bits(fused, eager));
      }
      const int launches = ns_steps == 0 ? 1 : ns_steps + 2;
      CHECK(step.counters().launches == 3 * launches);
      CHECK(step.counters().graph_breaks ==
            3 * (ns_steps == 0 ? 0 : ns_steps + 1));
      CHECK(step.counters().recompiles == 0);
      CHECK(muon.state(fused[0], "step").item() == 3);
    }
  }
}

TEST_CASE("on a GPU the products of matrices of one shape are one call") {
  const Device sim = parse_device("cuda-sim");
  const std::vector<Shape> sizes = {{4, 6}, {6, 4}, {4, 6}, {5, 5},
                                    {4, 6}, {6, 4}, {0, 3}};
  const MuonOptions options{.lr = 0.1, .ns_steps = 2};
  const Params here = make_params(sizes, 4);
  Params there;
  for (const Tensor& param : here) {
    there.push_back(param.to(sim));
    there.back().set_grad(param.grad().to(sim));
  }
  const Replaced cublas;
  Muon(here, options).step();
  Muon(there, options).step();
  // A call for each of three shapes, but one for all squares of [4, 4].
  CHECK(fake.calls == 2 * (3 + 2 + 3));
  CHECK(fake.products == 2 * 3 * 6);
  for (int n = 0; n < 3; ++n) {
    set_grads(here, n);
    for (std::size_t i = 0; i < here.size(); ++i) {
      there[i].grad().copy_(here[i].grad().to(sim));
    }
    Muon(here, options).step();
    Muon(there, options).step();
    for (std::size_t i = 0; i < here.size(); ++i) {
      CHECK(allclose(there[i].cpu(), here[i], 1e-5, 1e-6));
    }
  }
}

TEST_CASE("the bits do not depend on the number of threads") {
  const Params one = make_params({{90, 70}, {40, 130}}, 4);
  const Params many = copies(one);
  const auto train = [](const Params& params, int threads) {
    set_thread_count(threads);
    Muon muon(params, {.lr = 0.1});
    for (int n = 0; n < 3; ++n) {
      set_grads(params, n);
      muon.step();
    }
    set_thread_count(0);
  };
  train(one, 1);
  train(many, 3);
  CHECK(same_bits(one, many));
}

TEST_CASE("fullgraph refuses the products, and nothing has changed") {
  const Params params = make_params({{3, 4}}, 4);
  const Params before = copies(params);
  Muon muon(params);
  auto step = compile([&] { muon.step(); }, {.fullgraph = true});
  CHECK(contains(message_of<Error>([&] { step(); }), "graph break"));
  CHECK(same_bits(params, before));
  CHECK(muon.steps() == 0);
}

TEST_CASE("parameters that are no matrices are refused") {
  const std::string wanted = "but it takes matrices only; give the others to";
  const auto refused = [&](const auto& call) {
    const std::string message = message_of<Error>(call);
    CHECK(contains(message, wanted));
    return message;
  };
  const Tensor bias = make_params({{3}}, 1)[0];
  CHECK(contains(refused([&] { const Muon made({zeros({2, 2}), bias}); }),
                 "Muon: a parameter has shape [3]"));
  refused([&] { const Muon made(NamedParams{{"b", bias}}); });
  refused([&] { const Muon made(std::vector<Muon::Group>{{{bias}}}); });
  refused([&] { const Muon made({zeros({2, 2, 2})}); });
  const Params params = make_params({{2, 2}}, 1);
  const Params before = copies(params);
  Muon muon(params);
  muon.add_param_group({bias});
  refused([&] { muon.step(); });
  CHECK(same_bits(params, before));
  CHECK(muon.steps() == 0);
}

TEST_CASE("options are torch's, and what it refuses is refused") {
  const MuonOptions o;
  CHECK(o.lr.value() == 1e-3);
  CHECK(o.weight_decay.value() == 0.1);
  CHECK(o.momentum.value() == 0.95);
  CHECK(o.nesterov);
  CHECK(o.ns_coefficients[0].value() == 3.4445);
  CHECK(o.ns_coefficients[1].value() == -4.7750);
  CHECK(o.ns_coefficients[2].value() == 2.0315);
  CHECK(o.eps.value() == 1e-7);
  CHECK(o.ns_steps == 5);
  CHECK(o.adjust_lr_fn == "original");
  CHECK(refusal({.lr = -1.0}) == "Muon: invalid learning rate: -1");
  CHECK(refusal({.weight_decay = -1.0}) ==
        "Muon: invalid weight_decay value: -1");
  CHECK(refusal({.momentum = -1.0}) == "Muon: invalid momentum value: -1");
  CHECK(refusal({.ns_steps = 100}) ==
        "Muon: invalid ns_steps: 100; it must be at least 0 and below 100");
  CHECK(refusal({.ns_steps = -1}) ==
        "Muon: invalid ns_steps: -1; it must be at least 0 and below 100");
  CHECK(refusal({.adjust_lr_fn = "typo"}) ==
        "Muon: invalid adjust_lr_fn: \"typo\"; it is \"original\", "
        "\"match_rms_adamw\" or \"spectral_unclamped\"");
}

TEST_CASE("a run goes on from its states") {
  const Params params = make_params(shapes, 4);
  Muon muon(params, {.lr = 0.1});
  set_grads(params, 0);
  muon.step();
  // The average of the first gradient.
  const double first = params[0].grad().to_vector()[0];
  CHECK(muon.state(params[0], "momentum_buffer").to_vector()[0] ==
        doctest::Approx(0.05 * first));
  const Params in_memory = copies(params);
  Muon loaded(in_memory, {.lr = 0.3});
  loaded.load_state_dict(muon.state_dict());
  const ScratchDirectory folder;
  const std::string path = folder.path() + "/run.safetensors";
  save_checkpoint(path, muon);
  const Params from_file = make_params(shapes, 5);
  Muon resumed(from_file);
  load_checkpoint(path, resumed);
  for (int n = 1; n < 4; ++n) {
    for (const Params& each : {params, in_memory, from_file}) {
      set_grads(each, n);
    }
    for (Muon* const each : {&muon, &loaded, &resumed}) each->step();
  }
  CHECK(same_bits(in_memory, params));
  CHECK(same_bits(from_file, params));
}

TEST_CASE("a skipped step changes nothing") {
  const Params params = make_params(shapes, 6);
  const Params before = copies(params);
  Muon muon(params);
  auto step = compile([&] { muon.step({.skip = 1.0}); });
  step();
  CHECK(same_bits(params, before));
  CHECK(muon.state(params[2], "step").item() == 0);
}

TEST_CASE("without a gradient, or along zeros, only the decay moves") {
  const Tensor still = full({2, 3}, 1, DType::float64);
  const Tensor param = full({2, 3}, 1, DType::float64);
  Tensor(param).set_grad(zeros({2, 3}, DType::float64));
  Muon muon({still, param}, {.lr = 0.5, .weight_decay = 0.25});
  muon.step();
  CHECK(still.to_vector() == std::vector<double>(6, 1.0));
  CHECK(param.to_vector() == std::vector<double>(6, 0.875));
}

TEST_CASE("parameters that are rounded stochastically, compiled or not") {
  const std::vector<Shape> shapes = {{8, 12}, {40, 3}};
  const Params eagerly = make_params(shapes, 3, DType::bfloat16);
  const Params compiled = copies(eagerly);
  const Params nearest = copies(eagerly);
  const MuonOptions options{.lr = 0.01};
  Muon eager(eagerly, options);
  Muon fused(compiled, options);
  Muon plain(nearest, options);
  eager.use_stochastic_rounding(true, 3);
  fused.use_stochastic_rounding(true, 3);
  auto step = compile([&] { fused.step(); });
  for (int n = 0; n < 4; ++n) {
    eager.step();
    step();
    plain.step();
    CHECK(same_bits(compiled, eagerly));
  }
  CHECK_FALSE(same_bits(compiled, nearest));
}

TEST_CASE("parameters in 16 bits that are updated in float32") {
  const Params eagerly = make_params({{8, 12}, {40, 3}}, 3, DType::bfloat16);
  const Params compiled = copies(eagerly);
  Params exact;
  for (const Tensor& each : eagerly) {
    exact.push_back(each.to(DType::float32).clone());
    exact.back().set_grad(each.grad().to(DType::float32).clone());
  }
  const MuonOptions options{.lr = 0.01};
  Muon eager(eagerly, options);
  Muon fused(compiled, options);
  Muon wide(exact, options);
  eager.use_opmath();
  fused.use_opmath();
  auto step = compile([&] { fused.step(); });
  const auto round = [](Tensor tensor) {
    tensor.copy_(tensor.to(DType::bfloat16).to(DType::float32));
  };
  for (int n = 0; n < 4; ++n) {
    eager.step();
    step();
    wide.step();
    CHECK(same_bits(compiled, eagerly));
    for (std::size_t i = 0; i < exact.size(); ++i) {
      round(exact[i]);
      round(wide.state(exact[i], "momentum_buffer"));
      CHECK(same_bits(eagerly[i], exact[i].to(DType::bfloat16)));
    }
  }
}

TEST_CASE("parameters in 16 bits, with and without masters") {
  for (const bool masters : {false, true}) {
    const Params params = make_params({{8, 12}}, 3, DType::bfloat16);
    const Params exact = {params[0].to(DType::float32).clone()};
    Tensor(exact[0]).set_grad(params[0].grad().to(DType::float32).clone());
    const MuonOptions options{.lr = 0.01};
    Muon muon(params, options);
    if (masters) muon.use_master_weights();
    Muon wide(exact, options);
    for (int n = 0; n < 5; ++n) {
      muon.step();
      wide.step();
    }
    CHECK(allclose(params[0].to(DType::float32), exact[0], 0,
                   masters ? 0.02 : 0.1));
  }
}
