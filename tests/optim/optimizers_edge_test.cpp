#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include "fusebook/compile/compile.h"
#include "support/optimizer_rules.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace optimizer_rules;
using namespace step_testing;

namespace {

using Params = std::vector<Tensor>;

// The optimizers of some settings, each with a model of its own.
struct Runs {
  std::vector<const Case*> cases;
  std::vector<Params> params;
  std::vector<std::unique_ptr<Optimizer>> optimizers;

  void add(const Case& one, const Params& start) {
    cases.push_back(&one);
    params.push_back(copies(start));
    optimizers.push_back(one.make(params.back()));
  }
  void step() const {
    for (const auto& optimizer : optimizers) optimizer->step();
  }
};

}  // namespace

TEST_CASE("a step is one launch of one kernel that is compiled once") {
  for (const OptimizerRow& row : table()) {
    CAPTURE(row.name);
    Runs runs;
    runs.add(row.cases.front(), make_params(mixed_shapes(24), 3));
    auto step = compile([&] { runs.step(); }, {.fullgraph = true});
    for (int t = 1; t <= 20; ++t) {
      step();
      CHECK(step.counters().launches == t);
    }
    CHECK(step.counters().compilations == 1);
    CHECK(step.counters().recompiles == 0);
    const Tensor steps =
        row.cases.front().state(*runs.optimizers[0], runs.params[0][0], "step");
    CHECK(steps.dtype() == DType::float64);
    CHECK(steps.item() == 20);
  }
}

// The second parameter gets its first gradient at the third step, the third
// never; each is at a step of its own.
TEST_CASE("parameters may be at different steps") {
  const Params start = {single(0.5), single(-0.75), single(0.25)};
  Runs runs;
  std::vector<std::array<Element, 2>> exact;
  for (const OptimizerRow& row : table()) {
    for (const Case* one : {&row.cases.front(), &row.cases.back()}) {
      runs.add(*one, start);
      exact.push_back({Element{0.5, one->start}, Element{-0.75, one->start}});
    }
  }
  auto step = compile([&] { runs.step(); }, {.fullgraph = true});
  for (int t = 1; t <= 9; ++t) {
    const double grad = 0.25 * t - 1.0;
    for (std::size_t i = 0; i < runs.params.size(); ++i) {
      const Case& one = *runs.cases[i];
      set_grad(runs.params[i][0], grad);
      one.rule(exact[i][0], grad, t);
      if (t < 3) continue;
      set_grad(runs.params[i][1], -grad);
      one.rule(exact[i][1], -grad, t - 2);
    }
    step();
    for (std::size_t i = 0; i < runs.params.size(); ++i) {
      CAPTURE(i);
      CAPTURE(t);
      const Params& params = runs.params[i];
      CHECK(close(first_of(params[0]), exact[i][0].param, DType::float32));
      CHECK(close(first_of(params[1]), exact[i][1].param, DType::float32));
      CHECK(first_of(params[2]) == 0.25);
    }
  }
  CHECK(step.counters().launches == 9);
  CHECK(step.counters().compilations == 1);
}

// A float32 counter would stick at 2^24, a bfloat16 one at 256.
TEST_CASE("large step counts go on") {
  const std::vector<double> counts = {0,          5,      255,        256,
                                      0x1p24 - 1, 0x1p24, 0x1p24 + 1, 0x1p30};
  Params start;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    start.push_back(single(0.5 + 0.125 * double(i), DType::float64));
    set_grad(start.back(), 0.75);
  }
  Runs runs;
  std::vector<const OptimizerRow*> rows;
  for (const OptimizerRow& row : table()) {
    rows.push_back(&row);
    runs.add(row.cases.back(), start);
  }
  auto step = compile([&] { runs.step(); }, {.fullgraph = true});
  step();  // makes the states, which are then set back
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Case& one = *runs.cases[i];
    const Optimizer& optimizer = *runs.optimizers[i];
    for (std::size_t k = 0; k < counts.size(); ++k) {
      Tensor param = runs.params[i][k];
      param.copy_(start[k]);
      for (std::size_t s = 0; s < rows[i]->states.size(); ++s) {
        Tensor state = one.state(optimizer, param, rows[i]->states[s]);
        if (state.defined()) state.fill_(one.start[s]);
      }
      for (const char* name : {"step", "momentum_steps"}) {
        Tensor state = one.state(optimizer, param, name);
        if (state.defined()) state.fill_(counts[k]);
      }
    }
  }
  step();
  step();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(rows[i]->name);
    const Case& one = *runs.cases[i];
    for (std::size_t k = 0; k < counts.size(); ++k) {
      CAPTURE(counts[k]);
      const Tensor& param = runs.params[i][k];
      Element exact{first_of(start[k]), one.start};
      one.rule(exact, 0.75, counts[k] + 1);
      one.rule(exact, 0.75, counts[k] + 2);
      CHECK(close(first_of(param), exact.param, DType::float64));
      CHECK(one.state(*runs.optimizers[i], param, "step").item() ==
            counts[k] + 2);
    }
  }
  CHECK(step.counters().compilations == 1);
}

TEST_CASE("the hyper-parameters may be tensors, and move") {
  const Params start = make_params(mixed_shapes(8), 11);
  for_each_kind([&]<class Kind, class Options>(const Options& options) {
    CAPTURE(std::string(typeid(Kind).name()));
    Options as_tensors = options;
    each_scalar(as_tensors, [](const char*, int, Scalar& scalar) {
      scalar = Scalar(tensor(scalar.value(), DType::float64));
    });
    const Params a = copies(start);
    const Params b = copies(start);
    Kind with_numbers(a, options);
    Kind with_tensors(b, as_tensors);
    auto step_a = compile([&] { with_numbers.step(); }, {.fullgraph = true});
    auto step_b = compile([&] { with_tensors.step(); }, {.fullgraph = true});
    const bool reads_lr = !std::is_same_v<Kind, Rprop>;
    for (int t = 1; t <= 6; ++t) {
      if (t > 2) {
        for (Kind* optimizer : {&with_numbers, &with_tensors}) {
          optimizer->group(0)["lr"].assign(0.01 * t);
        }
      }
      step_a();
      step_b();
      CHECK(bitwise_equal(a, b));
    }
    CHECK(step_a.counters().recompiles == (reads_lr ? 1 : 0));
    CHECK(step_b.counters().recompiles == 0);
    CHECK(step_a.counters().launches == 6);
    CHECK(step_b.counters().launches == 6);
  });
}

TEST_CASE("groups with other hyper-parameters share the launch") {
  const Params start = make_params(mixed_shapes(10), 12);
  for_each_kind([&]<class Kind, class Options>(const Options& options) {
    CAPTURE(std::string(typeid(Kind).name()));
    Options other = options;
    each_scalar(other, [](const char* name, int, Scalar& scalar) {
      const std::string text = name;
      const bool may_grow = text != "betas" && text != "etas" &&
                            text != "alpha" && text != "rho" &&
                            text != "momentum";
      scalar.assign(scalar.value() * (may_grow ? 2 : 0.75));
    });
    if constexpr (std::is_same_v<Kind, Rprop>) other.etas = {0.25, 1.5};
    const Params a = copies(start);
    const Params b = copies(start);
    using Group = typename Kind::Group;
    const std::ptrdiff_t half = 5;
    Kind together(
        std::vector<Group>{{Params(a.begin(), a.begin() + half), options},
                           {Params(a.begin() + half, a.end()), other}});
    Kind first(Params(b.begin(), b.begin() + half), options);
    Kind second(Params(b.begin() + half, b.end()), other);
    auto step = compile([&] { together.step(); }, {.fullgraph = true});
    for (int t = 1; t <= 7; ++t) {
      step();
      first.step();
      second.step();
    }
    CHECK(bitwise_equal(a, b));
    CHECK(step.counters().launches == 7);
    CHECK(step.counters().compilations == 1);
  });
}

TEST_CASE("lr = 0 leaves the parameters alone") {
  Params start = make_params({{64}, {3}}, 5);
  // Where gradients are zero, so are second moments.
  start[1].grad().fill_(0);
  for_each_kind([&]<class Kind, class Options>(Options options) {
    CAPTURE(std::string(typeid(Kind).name()));
    options.lr = 0.0;
    const Params params = copies(start);
    Kind optimizer(params, options);
    for (int t = 0; t < 8; ++t) optimizer.step();
    if constexpr (std::is_same_v<Kind, Rprop>) {
      // Its rate is only where step sizes start; they are at least 1e-6.
      CHECK(!bitwise_equal(params[0], start[0]));
      CHECK(allclose(params[0], start[0], 0, 1e-4));
      CHECK(bitwise_equal(params[1], start[1]));
    } else {
      CHECK(bitwise_equal(params, start));
    }
  });
}

TEST_CASE("NaN and infinite gradients touch their own elements only") {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Params clean = make_params({{40}, {7}}, 6);
  const Params poisoned = copies(clean);
  poisoned[0].grad().data<float>()[3] = nan;
  poisoned[0].grad().data<float>()[17] = inf;
  poisoned[0].grad().data<float>()[39] = -inf;
  Runs good;
  Runs bad;
  Runs compiled;
  std::vector<std::string> names;
  for (const OptimizerRow& row : table()) {
    if (row.reads_norms) continue;
    for (const Case* one : {&row.cases.front(), &row.cases.back()}) {
      names.push_back(row.name);
      good.add(*one, clean);
      bad.add(*one, poisoned);
      compiled.add(*one, poisoned);
    }
  }
  auto step = compile([&] { compiled.step(); }, {.fullgraph = true});
  for (int t = 0; t < 7; ++t) {
    good.step();
    bad.step();
    step();
  }
  for (std::size_t i = 0; i < bad.params.size(); ++i) {
    const std::string& name = names[i];
    CAPTURE(name);
    CHECK(bitwise_equal(bad.params[i], compiled.params[i]));
    CHECK(bitwise_equal(bad.params[i][1], good.params[i][1]));
    const std::vector<double> x = bad.params[i][0].to_vector();
    const std::vector<double> y = good.params[i][0].to_vector();
    for (const std::size_t k : {3U, 17U, 39U}) {
      // Rprop looks at signs alone, and a NaN has none.
      if (name != "Rprop") CHECK(!std::isfinite(x[k]));
    }
    if (name == "Rprop") CHECK(x[3] == clean[0].to_vector()[3]);
    for (std::size_t k = 0; k < x.size(); ++k) {
      if (k != 3 && k != 17 && k != 39) CHECK(x[k] == y[k]);
    }
  }
}

TEST_CASE("denormals are kept") {
  const float least = std::numeric_limits<float>::denorm_min();
  Params start = {full({33}, 0.0)};
  set_grad(start[0], 3.0 * least);
  const Params sgd_params = copies(start);
  SGD sgd(sgd_params, {.lr = 1.0});
  auto sgd_step = compile([&] { sgd.step(); }, {.fullgraph = true});
  for (int t = 0; t < 2; ++t) sgd_step();
  CHECK(first_of(sgd_params[0]) == -6.0 * double(least));

  for (const Backend backend : {Backend::compiled, Backend::interpreted}) {
    Runs eager;
    Runs runs;
    for (const OptimizerRow& row : table()) {
      eager.add(row.cases.front(), start);
      runs.add(row.cases.front(), start);
    }
    auto step = compile([&] { runs.step(); }, {.backend = backend});
    for (int t = 0; t < 7; ++t) {
      step();
      eager.step();
    }
    for (std::size_t i = 0; i < runs.params.size(); ++i) {
      CAPTURE(table()[i].name);
      CHECK(bitwise_equal(runs.params[i], eager.params[i]));
    }
  }
}
