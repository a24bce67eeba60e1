// Every operation on 16-bit elements: computed as floats, rounded once, within
// the bound of its row; and how that reads in generated code.
#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <map>
#include <string>
#include <vector>

#include "fusebook/codegen/emit_kernel.h"
#include "fusebook/compile/compile.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/ops/element.h"
#include "support/reduced.h"
#include "support/reference.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;
using testing::contains;
using testing::same_value;

namespace {

constexpr std::int64_t length = 1031;

// Operands of one operation, and where its results go.
struct Trial {
  OpCode op{};
  DType dtype{};
  std::vector<TensorList> in;
  std::vector<Operand> operands;
  TensorList out;
};

Trial make_trial(OpCode op, DType dtype, bool with_number) {
  testing::Random random(std::uint64_t(op) * 4 + std::uint64_t(dtype));
  Trial trial{op, dtype, {}, {}, {zeros({length}, dtype)}};
  for (int k = 0; k < info(op).arity; ++k) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < length; ++i) {
      const double value = reduced::any_value(dtype, random);
      const bool positive = k == 0 && info(op).domain == Domain::positive;
      values.push_back(positive ? std::abs(value) : value);
    }
    trial.in.push_back({tensor(values, dtype)});
    if (with_number && k == 1) {
      trial.operands.emplace_back(0.1);
    } else {
      trial.operands.emplace_back(trial.in.back());
    }
  }
  return trial;
}

std::vector<Trial> all_trials() {
  std::vector<Trial> trials;
  for (int op = 0; op < op_count; ++op) {
    for (const DType dtype : reduced::types) {
      trials.push_back(make_trial(OpCode(op), dtype, false));
      if (info(OpCode(op)).arity < 2) continue;
      trials.push_back(make_trial(OpCode(op), dtype, true));
    }
  }
  return trials;
}

void run(std::vector<Trial>& trials) {
  for (Trial& trial : trials) {
    std::vector<const Operand*> in;
    for (const Operand& each : trial.operands) in.push_back(&each);
    foreach_copy_(trial.out, foreach_apply(trial.op, in, {}));
  }
}

using Tested = std::map<std::pair<OpCode, DType>, int>;

void check(const Trial& trial, Tested& tested) {
  std::vector<std::vector<double>> in;
  for (const TensorList& list : trial.in) in.push_back(list[0].to_vector());
  const std::vector<double> results = trial.out[0].to_vector();
  for (std::size_t i = 0; i < results.size(); ++i) {
    std::array<double, 4> x{};
    for (std::size_t k = 0; k < in.size(); ++k) {
      x[k] = trial.operands[k].is_list ? in[k][i] : 0.1;
    }
    INFO(info(trial.op).name << "(" << x[0] << ", " << x[1] << ", " << x[2]
                             << ", " << x[3] << ") in "
                             << name_of(trial.dtype));
    const double wanted = reference::apply(trial.op, trial.dtype, x);
    if (!same_value(results[i], wanted)) {
      FAIL_CHECK("is " << results[i] << ", not " << wanted);
    }
    const auto verdict = reduced::judge(trial.dtype, trial.op, x, results[i]);
    if (verdict == exact_values::Verdict::fails) {
      FAIL_CHECK("is " << results[i] << ", beyond its bound");
    }
    tested[{trial.op, trial.dtype}] += verdict == exact_values::Verdict::holds;
  }
}

void check_all(const std::vector<Trial>& trials) {
  Tested tested;
  for (const Trial& trial : trials) check(trial, tested);
  CHECK(tested.size() == std::size_t(op_count) * 2);
  for (const auto& [key, count] : tested) {
    INFO(name_of(key.first) << " in " << name_of(key.second));
    CHECK(count > 300);
  }
}

// What the kernel of one call looks like.
template <class Call>
std::string code_of(Call call) {
  LogCapture log(Log::output_code);
  auto step = compile(call);
  step();
  return log.take();
}

}  // namespace

TEST_CASE("every operation, one by one") {
  std::vector<Trial> trials = all_trials();
  run(trials);
  check_all(trials);
}

TEST_CASE("every operation, interpreted and compiled") {
  for (const Backend backend : {Backend::interpreted, Backend::compiled}) {
    std::vector<Trial> trials = all_trials();
    auto step =
        compile([&] { run(trials); }, {.fullgraph = true, .backend = backend});
    step();
    CHECK(step.counters().launches == 1);
    check_all(trials);
  }
}

TEST_CASE("a NaN of any bits stays one") {
  for (const std::uint64_t bits :
       {0x7fffffffffffffffU, 0xffffffffffffffffU, 0x7ff8000000000000U,
        0x7ffffff000000000U, 0x7ff0000000000001U}) {
    for (const DType dtype : {DType::bfloat16, DType::float16}) {
      const TensorList numbers =
          TensorList::per_tensor({tensor(std::bit_cast<double>(bits))});
      const TensorList sums = {full({37}, 1, dtype)};
      const TensorList products = {full({37}, 1, dtype)};
      auto step = compile([&] {
        foreach_add_(sums, numbers);
        foreach_mul_(products, numbers);
      });
      step();
      CHECK(step.counters().compilations == 1);
      for (int i = 0; i < 37; ++i) {
        REQUIRE(std::isnan(sums[0].to_vector()[std::size_t(i)]));
        REQUIRE(std::isnan(products[0].to_vector()[std::size_t(i)]));
      }
    }
  }
}

TEST_CASE("every upper half is rounded to the nearest bfloat16, ties to even") {
  std::vector<double> numbers;
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const std::uint32_t lower :
         {0x0U, 0x1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      numbers.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  const TensorList from = {tensor(numbers, float32)};
  const TensorList ones = {full({std::int64_t(numbers.size())}, 1, bfloat16)};
  const TensorList eager = {foreach_to(from, bfloat16)[0]};
  const TensorList cast = {zeros_like(ones[0])};
  const TensorList halved = {zeros_like(ones[0])};
  auto step = compile([&] {
    foreach_copy_(cast, foreach_to(from, bfloat16));
    foreach_copy_(halved, foreach_mul(cast, 0.5));
  });
  step();
  CHECK(step.counters().compilations == 1);
  const std::vector<double> results[] = {eager[0].to_vector(),
                                         cast[0].to_vector()};
  const std::vector<double> halves = halved[0].to_vector();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double wanted = reduced::round(bfloat16, numbers[i]);
    for (const std::vector<double>& result : results) {
      if (!same_value(result[i], wanted))
        FAIL(numbers[i] << " became " << result[i]);
    }
    const double half = reduced::round(bfloat16, wanted * 0.5);
    if (!same_value(halves[i], half)) FAIL(wanted << " became " << halves[i]);
  }
}

TEST_CASE("generated code says where it rounds") {
  const TensorList params({full({3}, 1, DType::bfloat16)}, "params");
  const TensorList grads({full({3}, 1, DType::float16)}, "grads");
  const TensorList steps =
      TensorList::per_tensor({tensor(1, DType::bfloat16)}, "steps");
  const std::string code = code_of([&] {
    foreach_add_(steps, 1.0);
    foreach_addcmul_(params, params, steps, 0.1);
    foreach_copy_(grads, params);
    foreach_sub_(params, foreach_to(grads, float32));
  });
  CHECK(contains(code, "x.params = from_bfloat16(at.params[i]);"));
  CHECK(contains(code, "at.params[i] = to_bfloat16(x.params);"));
  CHECK(contains(code, "at.grads[i] = to_float16(x.grads);"));
  CHECK(contains(code, "x.params = Floats::load_bfloat16(at.params + i, n);"));
  CHECK(contains(code, "x.params.store_rounded(at.params + i, n);"));
  CHECK(contains(code, "x.grads.store_rounded(at.grads + i, n);"));
  CHECK(contains(code, "Unaligned<bf16>* params;"));
  CHECK(contains(code, "in.steps = load_scalar<bf16>("));
  CHECK(contains(code, "store_scalar<bf16>("));
  // The result of an operation, not its parts; constants are floats.
  CHECK(contains(code,
                 "= round_result_bfloat16(addcmul<Float>(params, params, t."));
  CHECK(contains(code, "0x1.99999ap-4f /* 0.1 */));"));
  // From float16 to float32 there is nothing to round.
  CHECK(contains(code, "= round_float16(addcmul_1);"));
  CHECK(contains(code, "= Float(grads_next);"));
  CHECK(contains(code, "= sub<Float>("));
}

TEST_CASE("lists may be called like the conversions") {
  for (const char* name :
       {"f16", "bf16", "bits16", "round_bfloat16", "to_float16",
        "from_bfloat16", "Memory", "float_of", "bits_of", "round_to_odd",
        "begin", "begun", "Begun", "complete", "kept", "Kept", "restored",
        "store_begun", "store_completed"}) {
    CAPTURE(name);
    const TensorList list({full({3}, 1.5, DType::bfloat16)}, name);
    const TensorList steps = TensorList::per_tensor({tensor(2)}, name);
    auto step = compile([&] {
      foreach_mul_(list, foreach_add(steps, 1.0));
      foreach_div_(list, 0.5);
    });
    step();
    CHECK(step.counters().compilations == 1);
    CHECK(list[0].to_vector() == std::vector<double>{9, 9, 9});
  }
}
