// Adam written with foreach_map: in the shape of one call a state, and as one
// call in place. Both must be the library's Adam.
#include <doctest/doctest.h>

#include <cmath>
#include <regex>
#include <string>
#include <tuple>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/device/allocator.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/foreach/foreach_map.h"
#include "fusebook/optim/adam.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;

namespace {

struct Rates {
  double lr = 0.01;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
};

// The lists of one optimizer.
struct Lists {
  explicit Lists(const std::vector<Tensor>& tensors)
      : params(tensors, "params"),
        grads(grads_of(tensors), "grads"),
        exp_avgs(zeros_of(tensors), "exp_avgs"),
        exp_avg_sqs(zeros_of(tensors), "exp_avg_sqs"),
        steps(TensorList::per_tensor(scalars(tensors.size()), "steps")) {}

  static std::vector<Tensor> grads_of(const std::vector<Tensor>& tensors) {
    std::vector<Tensor> grads;
    for (const Tensor& each : tensors) grads.push_back(each.grad());
    return grads;
  }
  static std::vector<Tensor> zeros_of(const std::vector<Tensor>& tensors) {
    std::vector<Tensor> zeros;
    for (const Tensor& each : tensors) zeros.push_back(zeros_like(each));
    return zeros;
  }

  TensorList params;
  TensorList grads;
  TensorList exp_avgs;
  TensorList exp_avg_sqs;
  TensorList steps;
};

Element next_exp_avg_sq(const Element& v, const Element& g,
                        const Element& beta2) {
  return addcmul(v * beta2, g, g, 1 - beta2);
}

Element next_param(const Element& p, const Element& step, const Element& m,
                   const Element& v, const Element& beta1, const Element& beta2,
                   const Element& lr, const Element& eps) {
  const auto step_size = -(lr / (1 - pow(beta1, step)));
  const auto bias_correction2 = sqrt(1 - pow(beta2, step));
  const auto denominator = sqrt(v) / bias_correction2 + eps;
  return addcdiv(p, m, denominator, step_size);
}

// One call of foreach_map for each state, and copies, as torch needs it.
void state_by_state(const Lists& s, const Rates& r) {
  const auto steps = foreach_map([](auto x) { return x + 1; }, s.steps);
  foreach_copy_(s.steps, steps);
  const auto exp_avgs =
      foreach_map([](auto m, auto g, auto w) { return lerp(m, g, w); },
                  s.exp_avgs, s.grads, 1 - r.beta1);
  const auto exp_avg_sqs =
      foreach_map(next_exp_avg_sq, s.exp_avg_sqs, s.grads, r.beta2);
  const auto params = foreach_map(next_param, s.params, s.steps, exp_avgs,
                                  exp_avg_sqs, r.beta1, r.beta2, r.lr, r.eps);
  foreach_copy_(s.exp_avgs, exp_avgs);
  foreach_copy_(s.exp_avg_sqs, exp_avg_sqs);
  foreach_copy_(s.params, params);
}

// All of it in one call.
void at_once(const Lists& s, const Rates& r) {
  foreach_map_(
      [](auto step, auto m, auto v, auto p, auto g, auto beta1, auto beta2,
         auto lr, auto eps) {
        const auto next = step + 1;
        const auto mean = lerp(m, g, 1 - beta1);
        const auto square = next_exp_avg_sq(v, g, beta2);
        return std::tuple(
            next, mean, square,
            next_param(p, next, mean, square, beta1, beta2, lr, eps));
      },
      into(s.steps, s.exp_avgs, s.exp_avg_sqs, s.params), s.grads, r.beta1,
      r.beta2, r.lr, r.eps);
}

std::int64_t tensor_allocations() {
  const AllocatorStatistics now = allocator_statistics();
  return now.system_allocations + now.cache_hits;
}

using Step = void (*)(const Lists&, const Rates&);

// Five compiled, interpreted and eager steps, and five of the library's Adam,
// from the same start; returns the code.
std::string compare(Step step, std::size_t count,
                    DType dtype = DType::float32) {
  const auto start = make_params(mixed_shapes(count), 7, dtype);
  const auto fresh = [&] { return copies(start); };
  const Lists compiled_lists(fresh());
  const Lists interpreted_lists(fresh());
  const Lists eager_lists(fresh());
  const auto library = fresh();
  Adam adam(library, {.lr = 0.01});
  auto compiled = compile([&] { step(compiled_lists, {}); });
  auto interpreted = compile([&] { step(interpreted_lists, {}); },
                             {.backend = Backend::interpreted});
  for (int k = 0; k < 5; ++k) {
    const auto before = tensor_allocations();
    compiled();
    CHECK(tensor_allocations() == before);  // no temporaries
    interpreted();
    CHECK(tensor_allocations() == before);
    step(eager_lists, {});
    adam.step();
    assert_fused(compiled);
  }
  CHECK(compiled.counters().launches == 5);
  CHECK(compiled.counters().compilations == 1);
  CHECK(compiled.counters().uploads == 1);
  for (const Lists* lists : {&interpreted_lists, &eager_lists}) {
    CHECK(bitwise_equal(lists->params, compiled_lists.params));
    CHECK(bitwise_equal(lists->exp_avgs, compiled_lists.exp_avgs));
    CHECK(bitwise_equal(lists->exp_avg_sqs, compiled_lists.exp_avg_sqs));
    CHECK(bitwise_equal(lists->steps, compiled_lists.steps));
  }
  CHECK(bitwise_equal(library, compiled_lists.params.tensors()));
  return compiled.output_code();
}

std::string without_comments(const std::string& code) {
  return std::regex_replace(code, std::regex(" *//[^\n]*"), "");
}

}  // namespace

TEST_CASE("both are one launch, one kernel, and the library's Adam") {
  std::vector<std::string> codes;
  for (const std::size_t count : {1, 10, 1000, 10000}) {
    INFO(count);
    for (const Step step : {&state_by_state, &at_once}) {
      codes.push_back(without_comments(compare(step, count)));
    }
  }
  for (const std::string& code : codes) {
    CHECK(code.size() > 500);
    CHECK(code == codes[0]);
  }
}

TEST_CASE("in 16 bits, too") {
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    CAPTURE(name_of(dtype));
    const std::string code = without_comments(compare(&at_once, 10, dtype));
    CHECK(code == without_comments(compare(&state_by_state, 10, dtype)));
    // What adds and multiplies bfloat16 alone knows which NaNs there may be.
    const std::string rounds =
        dtype == DType::bfloat16 ? "round_result_bfloat16" : "round_float16";
    CHECK(code.find(rounds + "(lerp<Float>(") != std::string::npos);
  }
}

TEST_CASE("eager: one launch for each operation on elements, and the copies") {
  const auto launches_of = [](Step step) {
    const Lists lists(make_params(mixed_shapes(10), 7));
    const Counters before = process_counters();
    step(lists, {});
    return (process_counters() - before).launches;
  };
  // lerp, mul, addcmul, sqrt, div, add, addcdiv, and three copies.
  CHECK(launches_of(&state_by_state) == 10);
  CHECK(launches_of(&at_once) == 10);
}

TEST_CASE("the seed's denominator is another one, and NaN where lr is 0") {
  const auto seeds = [](auto p, auto m, auto v, auto lr) {
    const auto step_size = -(lr / (1 - pow(Element(0.9), 1)));
    const auto correction = sqrt(1 - pow(Element(0.999), 1));
    return p + m / (sqrt(v) / (correction * step_size) + 1e-8 / step_size);
  };
  const TensorList p({tensor({1.0, 2.0})});
  const TensorList m({tensor({0.0, 0.1})});
  const TensorList v({tensor({0.0, 0.01})});
  const auto moved = foreach_map(seeds, p, m, v, 0.01);
  CHECK(moved[0].to_vector()[0] == 1);
  CHECK(moved[0].to_vector()[1] < 2);
  const auto stopped = foreach_map(seeds, p, m, v, 0.0);
  CHECK(std::isnan(stopped[0].to_vector()[0]));
}
