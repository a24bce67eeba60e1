#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/runtime/parallel.h"
#include "support/optimizer_rules.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace optimizer_rules;
using namespace step_testing;

namespace {

using Params = std::vector<Tensor>;

// Enough for RAdam's averages to become long (step 6), with turns for Rprop.
// All are powers of two, so that every gradient is exact.
constexpr std::array grad_factors = {1.0, -0.5, -2.0, -0.25,
                                     0.5, 1.0,  0.5,  2.0};
constexpr int steps = int(grad_factors.size());

Params make_model(const std::vector<Shape>& shapes,
                  const std::vector<DType>& dtypes) {
  testing::Random random(29);
  Params params;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    params.push_back(
        random_tensor(shapes[i], random, 0, dtypes[i % dtypes.size()]));
  }
  set_random_grads(params, random);
  return params;
}

// Puts gradients in place that are `factor` times the first ones.
void set_grads(const Params& params, const Params& first, double factor) {
  for (std::size_t i = 0; i < params.size(); ++i) {
    std::vector<double> values = first[i].grad().to_vector();
    for (double& value : values) value *= factor;
    assign(params[i].grad(), values);
  }
}

// A model and an optimizer of it.
struct Run {
  Run(const Case& wanted, const Params& start)
      : one(wanted), params(copies(start)), optimizer(one.make(params)) {}
  const Case& one;
  Params params;
  std::unique_ptr<Optimizer> optimizer;
};

bool same_state(const OptimizerRow& row, const Run& a, const Run& b) {
  std::vector<std::string> names(row.states.begin(), row.states.end());
  names.emplace_back("step");
  for (const std::string& name : names) {
    for (std::size_t i = 0; i < a.params.size(); ++i) {
      const Tensor x = a.one.state(*a.optimizer, a.params[i], name);
      const Tensor y = b.one.state(*b.optimizer, b.params[i], name);
      if (x.defined() != y.defined()) return false;
      if (x.defined() && !bitwise_equal(x, y)) return false;
    }
  }
  return true;
}

// How far a value is from the exact one, in units of what its dtype tells
// apart around the larger of the exact value and one.
double distance(double value, double exact, DType dtype) {
  if (std::isnan(value) || std::isnan(exact)) return HUGE_VAL;
  const double unit = dtype == DType::float32 ? 0x1p-24 : 0x1p-53;
  return std::abs(value - exact) / (unit * std::max(1.0, std::abs(exact)));
}

// The elements of one parameter as the rule leaves them.
std::vector<Element> follow_rule(const Case& one, const Tensor& start) {
  const std::vector<double> values = start.to_vector();
  const std::vector<double> grads = start.grad().to_vector();
  std::vector<Element> elements;
  for (std::size_t i = 0; i < values.size(); ++i) {
    Element element{values[i], one.start};
    for (int t = 0; t < steps; ++t) {
      one.rule(element, grads[i] * grad_factors[std::size_t(t)], t + 1);
    }
    elements.push_back(element);
  }
  return elements;
}

double worst_distance(const OptimizerRow& row, const Run& run,
                      const Params& start) {
  double worst = 0;
  for (std::size_t t = 0; t < start.size(); ++t) {
    const DType dtype = start[t].dtype();
    const std::vector<Element> exact = follow_rule(run.one, start[t]);
    const std::vector<double> params = run.params[t].to_vector();
    for (std::size_t i = 0; i < exact.size(); ++i) {
      worst = std::max(worst, distance(params[i], exact[i].param, dtype));
    }
    for (std::size_t s = 0; s < row.states.size(); ++s) {
      const Tensor state =
          run.one.state(*run.optimizer, run.params[t], row.states[s]);
      if (!state.defined()) continue;
      const std::vector<double> values = state.to_vector();
      for (std::size_t i = 0; i < values.size() && i < exact.size(); ++i) {
        worst = std::max(worst,
                         distance(values[i], exact[i].state[s], state.dtype()));
      }
    }
  }
  return worst;
}

Params small_model(const std::vector<DType>& dtypes) {
  std::vector<Shape> shapes = mixed_shapes(12);
  shapes.push_back({601});
  shapes.push_back({599});
  return make_model(shapes, dtypes);
}

const std::vector<DType> both_dtypes = {DType::float32, DType::float64};

// Large enough that eight threads get a share each.
Params large_model() {
  return make_model({{70001}, {}, {0}, {1}, {33, 31}, {1, 65003}}, both_dtypes);
}

std::vector<Run> runs_of(const std::vector<const Case*>& cases,
                         const Params& start) {
  std::vector<Run> runs;
  runs.reserve(cases.size());
  for (const Case* one : cases) runs.emplace_back(*one, start);
  return runs;
}

// Steps all runs, through `call` at once.
void advance(std::vector<Run>& runs, const Params& start,
             const std::function<void()>& call) {
  for (const double factor : grad_factors) {
    for (Run& run : runs) set_grads(run.params, start, factor);
    call();
  }
}

void step_all(std::vector<Run>& runs) {
  for (Run& run : runs) run.optimizer->step();
}

std::vector<const Case*> all_cases(const OptimizerRow& row) {
  std::vector<const Case*> cases;
  for (const Case& one : row.cases) cases.push_back(&one);
  return cases;
}

void check_same(const OptimizerRow& row, const std::vector<Run>& a,
                const std::vector<Run>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(a[i].one.label);
    CHECK(bitwise_equal(a[i].params, b[i].params));
    CHECK(same_state(row, a[i], b[i]));
  }
}

// As the parameter, but for what is one number of it.
void check_state_dtypes(const OptimizerRow& row, const Run& run) {
  std::vector<std::string> names(row.states.begin(), row.states.end());
  names.emplace_back("step");
  for (const std::string& name : names) {
    for (const Tensor& param : run.params) {
      const Tensor state = run.one.state(*run.optimizer, param, name);
      if (!state.defined()) continue;
      const bool number = state.shape() != param.shape() || name == "step";
      if (number) {
        CHECK(state.dtype() == DType::float64);
      } else if (param.dim() > 0) {
        CHECK(state.dtype() == param.dtype());
      }
    }
  }
}

// Every parameter with elements, and to numbers.
void check_moved(const Run& run, const Params& start) {
  for (std::size_t i = 0; i < start.size(); ++i) {
    if (start[i].numel() == 0) continue;
    CAPTURE(i);
    const std::vector<double> before = start[i].to_vector();
    const std::vector<double> after = run.params[i].to_vector();
    CAPTURE(before[0]);
    CAPTURE(after[0]);
    CHECK_FALSE(same_bits(run.params[i], start[i]));
    for (const double value : after) CHECK(std::isfinite(value));
  }
}

// All settings of one optimizer in one compiled function: still one launch.
void check_compiled(const OptimizerRow& row, const Params& start,
                    Backend backend) {
  std::vector<Run> eager = runs_of(all_cases(row), start);
  advance(eager, start, [&] { step_all(eager); });
  std::vector<Run> runs = runs_of(all_cases(row), start);
  auto step =
      compile([&] { step_all(runs); }, {.fullgraph = true, .backend = backend});
  advance(runs, start, [&] { step(); });
  check_same(row, eager, runs);
  CHECK(step.counters().launches == steps);
  CHECK(step.counters().compilations == 1);
  CHECK(step.counters().recompiles == 0);
}

}  // namespace

// The float64 parameters are as close as float64 is: nothing on the way was
// rounded to float32. A few roundings a step, eight steps.
// Those that read norms are held against whole tensors in trust_ratio_test.
TEST_CASE("every setting follows the published formulas") {
  const Params start = small_model(both_dtypes);
  for (const OptimizerRow& row : table()) {
    if (row.reads_norms) continue;
    CAPTURE(row.name);
    std::vector<Run> eager = runs_of(all_cases(row), start);
    advance(eager, start, [&] { step_all(eager); });
    for (const Run& run : eager) {
      CAPTURE(run.one.label);
      CHECK(worst_distance(row, run, start) < 12);
    }
  }
}

TEST_CASE("compiled, interpreted and eager steps have the same bits") {
  for (const OptimizerRow& row : table()) {
    CAPTURE(row.name);
    check_compiled(row, small_model(both_dtypes), Backend::interpreted);
    // Compilers take long over so many settings; float64 follows below.
    check_compiled(row, small_model({DType::float32}), Backend::compiled);
  }
}

// Both 16-bit types in one step, and so in one kernel.
TEST_CASE("16-bit parameters: the same bits, and states as the parameters") {
  const std::vector<DType> reduced = {DType::bfloat16, DType::float16};
  const Params start = small_model(reduced);
  for (const OptimizerRow& row : table()) {
    CAPTURE(row.name);
    check_compiled(row, start, Backend::interpreted);
    OptimizerRow last = row;
    last.cases.erase(last.cases.begin(), last.cases.end() - 2);
    check_compiled(last, start, Backend::compiled);
    std::vector<Run> runs = runs_of(all_cases(row), start);
    advance(runs, start, [&] { step_all(runs); });
    for (const Run& run : runs) {
      CAPTURE(run.one.label);
      check_state_dtypes(row, run);
      check_moved(run, start);
    }
  }
}

TEST_CASE("bits do not depend on the number of threads") {
  const Params start = large_model();
  std::vector<const Case*> cases;
  for (const OptimizerRow& row : table()) cases.push_back(&row.cases.back());
  set_thread_count(1);
  std::vector<Run> eager = runs_of(cases, start);
  advance(eager, start, [&] { step_all(eager); });
  std::vector<Run> runs;
  auto compiled = compile([&] { step_all(runs); }, {.fullgraph = true});
  auto interpreted =
      compile([&] { step_all(runs); }, {.backend = Backend::interpreted});
  const auto check = [&](const std::function<void()>& call) {
    runs = runs_of(cases, start);
    advance(runs, start, call);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      CAPTURE(table()[i].name);
      CHECK(bitwise_equal(eager[i].params, runs[i].params));
      CHECK(same_state(table()[i], eager[i], runs[i]));
    }
  };
  for (const int threads : {1, 2, 3, 8}) {
    CAPTURE(threads);
    set_thread_count(threads);
    check([&] { compiled(); });
    check([&] { interpreted(); });
    check([&] { step_all(runs); });
  }
  set_thread_count(0);
  CHECK(compiled.counters().launches == 4 * steps);
  CHECK(compiled.counters().compilations == 1);
}

TEST_CASE("one tensor after the other gives the same bits") {
  const Params start = small_model(both_dtypes);
  for_each_kind([&]<class Kind, class Options>(const Options& together) {
    Options apart = together;
    apart.foreach = false;
    const Case a = make_case<Kind>("together", together);
    const Case b = make_case<Kind>("apart", apart);
    std::vector<Run> runs = runs_of({&a, &b}, start);
    advance(runs, start, [&] { step_all(runs); });
    CHECK(bitwise_equal(runs[0].params, runs[1].params));
  });
}
