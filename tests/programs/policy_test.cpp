#include "fusebook/programs/policy.h"

#include <doctest/doctest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/device/device.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/lr_scheduler/all.h"
#include "fusebook/optim/adam.h"
#include "fusebook/support/error.h"
#include "fusebook/support/number_text.h"
#include "fusebook/support/source_place.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;

namespace {

// A compiled Adam beside an eager one with equal parameters.
struct Pair {
  explicit Pair(Policy wanted, std::size_t groups = 1) : policy(wanted) {
    std::vector<Adam::Group> others;
    std::vector<Adam::Group> own;
    for (std::size_t g = 0; g < groups; ++g) {
      const auto params = make_params(mixed_shapes(5), g + 1);
      own.emplace_back(params, AdamOptions{.lr = 0.01});
      others.emplace_back(copies(params), AdamOptions{.lr = 0.01});
    }
    compiled = std::make_unique<Adam>(own);
    eager = std::make_unique<Adam>(others);
  }

  void set(const std::string& name, double value) {
    for (Adam* adam : {compiled.get(), eager.get()}) {
      for (auto& group : adam->param_groups) group[name] = value;
    }
  }
  void call() {
    eager->step();
    step();
  }
  bool same() const {
    return same_bits(compiled->parameters(), eager->parameters());
  }
  const Counters& counters() const { return step.counters(); }

  Policy policy;
  std::unique_ptr<Adam> compiled;
  std::unique_ptr<Adam> eager;
  struct Step {
    Pair* pair;
    void operator()() const { pair->compiled->step(); }
  };
  Compiled<Step> step = compile(Step{this}, {.policy = policy});
};

// The numbers of a report without its first two lines.
std::string failures_of(const std::string& text) {
  const std::string head = "guard failure(s):";
  const std::size_t at = text.find(head);
  return at == std::string::npos ? text : text.substr(at + head.size());
}

std::string lr_line(const std::string& value) {
  return "\n    - param_groups[0][\"lr\"] == " + value;
}

const std::vector<std::string> kLinear = {
    "0.003333333333333333", "0.004666666666666667", "0.006000000000000001",
    "0.007333333333333335"};

}  // namespace

TEST_CASE("policies have names") {
  CHECK(policy_named("promote") == Policy::promote);
  CHECK(policy_named("specialize") == Policy::specialize);
  CHECK(policy_named("fail_on_recompile") == Policy::fail_on_recompile);
  CHECK(testing::message_of<Error>([] { policy_named("promot"); }) ==
        "unknown policy \"promot\"; use one of promote, specialize, "
        "fail_on_recompile");
}

// ---- specialize -------------------------------------------------------------

TEST_CASE("specialize: the reports of a linear schedule accumulate") {
  LogCapture log(Log::recompiles);
  Pair pair(Policy::specialize);
  LinearLR theirs(*pair.eager, {.total_iters = 5});
  LinearLR sched(*pair.compiled, {.total_iters = 5});
  const int line = __LINE__ + 1;
  auto step = compile(
      [&] {
        pair.compiled->step();
        sched.step();
      },
      {.policy = Policy::specialize});
  std::vector<std::string> texts;
  for (int i = 0; i < 5; ++i) {
    step();
    pair.eager->step();
    theirs.step();
    texts.push_back(log.take());
    CHECK(step.recompile_reports().size() == std::size_t(i));
  }
  CHECK(texts[0].empty());
  std::string expected;
  for (std::size_t i = 0; i < 4; ++i) {
    expected = lr_line(kLinear[i]) + expected;
    CHECK(texts[i + 1] ==
          std::string("[recompiles] Recompiling function step in ") +
              short_path(__FILE__) + ":" + std::to_string(line) +
              "\n    triggered by the following guard failure(s):" + expected +
              "\n");
  }
  CHECK(step.counters().compilations == 5);
  CHECK(step.counters().recompiles == 4);
  CHECK(step.counters().launches == 5);
  CHECK(pair.same());
}

TEST_CASE("specialize: a constant schedule recompiles once in five calls") {
  Adam adam(make_params({{3}}, 1), {.lr = 0.01});
  ConstantLR sched(adam, {.factor = 0.001, .total_iters = 4});
  auto step = compile(
      [&] {
        adam.step();
        sched.step();
      },
      {.policy = Policy::specialize});
  for (int i = 0; i < 5; ++i) step();
  CHECK(step.counters().recompiles == 1);
  REQUIRE(step.recompile_reports().size() == 1);
  const RecompileReport& report = step.recompile_reports()[0];
  REQUIRE(report.failures.size() == 1);
  CHECK(report.failures[0].guarded == 0.01 * 0.001);
  CHECK(report.failures[0].now == doctest::Approx(0.01).epsilon(1e-15));
}

TEST_CASE("specialize: a value that comes back finds its kernel") {
  Pair pair(Policy::specialize);
  for (const double rate : {0.01, 0.02, 0.03, 0.01, 0.03, 0.02}) {
    pair.set("lr", rate);
    pair.call();
    CHECK(pair.same());
  }
  CHECK(pair.counters().compilations == 3);
  CHECK(pair.counters().recompiles == 2);
  CHECK(pair.counters().launches == 6);
}

TEST_CASE("specialize: after eight kernels one warning, then eager") {
  Pair pair(Policy::specialize, 2);
  jit_testing::CapturedStderr captured;
  const auto rate = [](int i) { return 0.01 / double(i + 1); };
  for (int i = 0; i < 8; ++i) {
    pair.set("lr", rate(i));
    pair.call();
  }
  CHECK(pair.counters().compilations == 8);
  CHECK(pair.counters().launches == 8);

  const Counters process = process_counters();
  pair.eager->step();
  const Counters by_hand = process_counters() - process;
  pair.step();  // the eighth kernel again
  CHECK(pair.counters().launches == 9);
  std::int64_t launches = 9;
  for (int i = 8; i < 12; ++i) {
    pair.set("lr", rate(i));
    const Counters before = process_counters();
    pair.step();
    const Counters all = process_counters() - before;
    pair.eager->step();
    CHECK(pair.same());
    CHECK(pair.counters().compilations == 8);
    CHECK(pair.counters().recompiles == 7);
    // An operation at a time, as it would be without compile.
    CHECK(all.launches == by_hand.launches);
    CHECK(all.bytes_moved == by_hand.bytes_moved);
    CHECK(pair.counters().launches == launches + all.launches);
    launches = pair.counters().launches;
  }
  // What has a kernel still uses it.
  for (const int i : {0, 7, 3}) {
    pair.set("lr", rate(i));
    pair.call();
    CHECK(pair.same());
    CHECK(pair.counters().launches == ++launches);
  }
  const std::string text = captured.stop();
  CHECK(jit_testing::count_of(text, "\n") == 1);
  CHECK(jit_testing::count_of(text, "fusebook: warning: function step in ") ==
        1);
  CHECK(testing::contains(text, short_path(__FILE__) + ":"));
  CHECK(testing::contains(
      text,
      " has 8 kernels for values of param_groups[0][\"lr\"], "
      "param_groups[1][\"lr\"]; for other values it runs eagerly from "
      "now on. "));
}

TEST_CASE("specialize: every function has a limit of its own") {
  const auto list = make_params({{3}}, 1);
  double factor = 1;
  const auto body = [&] { foreach_mul_(list, factor); };
  jit_testing::CapturedStderr captured;
  for (const std::string name : {"first", "second"}) {
    auto step = compile(body, {.name = name, .policy = Policy::specialize});
    for (int i = 0; i < 12; ++i) {
      factor = 1 + i;
      step();
    }
    CHECK(step.counters().compilations == 8);
    CHECK(step.counters().launches == 12);
  }
  const std::string text = captured.stop();
  CHECK(testing::contains(text, "function first in "));
  CHECK(testing::contains(text, "function second in "));
  CHECK(jit_testing::count_of(text, "\n") == 2);
}

TEST_CASE("specialize: other operations have kernels of their own") {
  Pair pair(Policy::specialize);
  jit_testing::CapturedStderr captured;
  for (const double decay : {0.0, 0.1}) {
    pair.set("weight_decay", decay);
    for (int i = 0; i < 8; ++i) {
      pair.set("lr", 0.01 / double(i + 1));
      pair.call();
    }
  }
  CHECK(captured.stop().empty());
  CHECK(pair.same());
  CHECK(pair.counters().compilations == 16);
  CHECK(pair.counters().launches == 16);
}

TEST_CASE("specialize: lists that swap or share values survive going eager") {
  const auto make = [] { return make_params({{5}, {}, {33}}, 3); };
  const TensorList a(make());
  const TensorList b(copies(make_params({{5}, {}, {33}}, 4)));
  const TensorList c(copies(a.tensors()));
  const TensorList d(copies(b.tensors()));
  double factor = 1;
  const auto body = [&](const TensorList& x, const TensorList& y) {
    const TensorList old_x = foreach_mul(x, 1.0);
    const TensorList twice = foreach_mul(y, factor);
    foreach_copy_(x, y);
    foreach_copy_(y, old_x);
    foreach_add_(x, twice);
    foreach_copy_(x, foreach_neg(x));
  };
  auto step = compile([&] { body(a, b); }, {.policy = Policy::specialize});
  jit_testing::CapturedStderr captured;
  for (int i = 0; i < 12; ++i) {
    factor = 0.5 + i / 16.0;
    step();
    body(c, d);
    CHECK(bitwise_equal(a, c));
    CHECK(bitwise_equal(b, d));
  }
  CHECK(step.counters().compilations == 8);
  CHECK(testing::contains(captured.stop(), "runs eagerly"));
}

TEST_CASE(
    "specialize: going eager, an overlap within an operation is an error") {
  Tensor whole = full({8}, 1);
  const TensorList low({from_blob(whole.data<float>(), {6})});
  const TensorList high({from_blob(whole.data<float>() + 2, {6})});
  const TensorList other(make_params({{6}}, 1));
  bool overlap = false;
  double factor = 1;
  auto step = compile(
      [&] {
        foreach_mul_(low, factor);
        foreach_add_(low, overlap ? high : other);
      },
      {.policy = Policy::specialize});
  jit_testing::CapturedStderr captured;
  for (int i = 0; i < 9; ++i) {
    factor = 1 + i;
    step();
  }
  const std::vector<double> before = whole.to_vector();
  overlap = true;
  factor = 100;
  CHECK(testing::contains(testing::message_of<Error>([&] { step(); }),
                          "overlap"));
  CHECK(whole.to_vector() == before);
  captured.stop();
}

TEST_CASE("specialize: going eager, operations that overlap keep their order") {
  Tensor whole = full({8}, 1);
  const TensorList low({from_blob(whole.data<float>(), {6})});
  const TensorList high({from_blob(whole.data<float>() + 2, {6})});
  double factor = 1;
  auto step = compile(
      [&] {
        foreach_mul_(low, factor);
        foreach_add_(high, 1.0);
      },
      {.policy = Policy::specialize});
  jit_testing::CapturedStderr captured;
  std::vector<double> expected(8, 1);
  for (int call = 0; call < 12; ++call) {
    factor = 1 + call % 10 / 8.0;
    step();
    for (std::size_t i = 0; i < 8; ++i) {
      if (i < 6) expected[i] = float(expected[i]) * float(factor);
      if (i >= 2) expected[i] = float(expected[i] + 1);
    }
    REQUIRE(whole.to_vector() == expected);
  }
  CHECK(step.counters().graph_breaks == 12);
  captured.stop();
}

TEST_CASE(
    "specialize: values come back into the function after it went eager") {
  Pair pair(Policy::specialize);
  jit_testing::CapturedStderr captured;
  // A function with a graph break: two programs a call.
  Adam& adam = *pair.compiled;
  double seen = 0;
  auto step = compile(
      [&] {
        adam.step();
        seen = adam.parameters()[0].to_vector()[0];
        adam.step();
      },
      {.policy = Policy::specialize});
  for (int i = 0; i < 11; ++i) {
    pair.set("lr", 0.01 / double(i + 1));
    step();
    pair.eager->step();
    CHECK(seen == pair.eager->parameters()[0].to_vector()[0]);
    pair.eager->step();
  }
  CHECK(pair.same());
  CHECK(step.counters().graph_breaks == 11);
  CHECK(jit_testing::count_of(captured.stop(), "warning") == 1);
}

// ---- fail_on_recompile ------------------------------------------------------

TEST_CASE("fail_on_recompile: the error is the report, and nothing is done") {
  Pair pair(Policy::fail_on_recompile);
  pair.call();
  pair.call();
  CHECK(pair.counters().compilations == 1);
  const auto before = copies(pair.compiled->parameters());
  const auto param = pair.compiled->parameters()[0];
  const double count = pair.compiled->state(param, "step").item();
  const Counters counters = pair.counters();
  pair.set("lr", 0.02);
  LogCapture log(Log::recompiles);
  for (int i = 0; i < 2; ++i) {
    const std::string text =
        testing::message_of<RecompileError>([&] { pair.step(); });
    CHECK(testing::contains(
        text, "Recompiling function step in " + short_path(__FILE__) + ":"));
    CHECK(testing::contains(
        failures_of(text),
        lr_line("0.01") + "\nand its policy forbids recompiling"));
  }
  CHECK(log.take().empty());
  CHECK(same_bits(pair.compiled->parameters(), before));
  CHECK(pair.compiled->state(param, "step").item() == count);
  CHECK(pair.counters() == counters);
  CHECK(pair.step.recompile_reports().empty());
  // It works on where the value is what it was.
  pair.set("lr", 0.01);
  pair.call();
  CHECK(pair.same());
  CHECK(pair.counters().launches == counters.launches + 1);
}

TEST_CASE("fail_on_recompile: the report comes as data") {
  Pair pair(Policy::fail_on_recompile);
  pair.call();
  pair.set("betas[1]", 0.5);
  try {
    pair.step();
    FAIL("no error");
  } catch (const RecompileError& error) {
    CHECK(error.report().function == "step");
    CHECK(error.report().failures ==
          std::vector<GuardFailure>{
              {"param_groups[0][\"betas\"][1]", 0.999, 0.5}});
  }
}

TEST_CASE("fail_on_recompile: what ran on the host before stays") {
  const auto list = make_params({{3}}, 1);
  const auto before = copies(list);
  double factor = 1;
  int calls = 0;
  auto step = compile(
      [&] {
        ++calls;
        foreach_mul_(list, factor);
        ++calls;
      },
      {.policy = Policy::fail_on_recompile});
  step();
  factor = 2;
  CHECK_THROWS_AS(step(), RecompileError);
  CHECK(calls == 4);
  CHECK(same_bits(list, before));
}

TEST_CASE("fail_on_recompile: other operations are refused as well") {
  Pair pair(Policy::fail_on_recompile);
  pair.call();
  pair.set("weight_decay", 0.1);
  CHECK(testing::contains(
      testing::message_of<RecompileError>([&] { pair.step(); }),
      "\n    - the recorded operations differ: "
      "param_groups[0][\"weight_decay\"] was 0 and is 0.1, which adds "
      "add_scaled (step() at tests/"));
}

TEST_CASE("fail_on_recompile: tensors move freely, breaks are no recompiles") {
  Adam adam(make_params({{3}}, 1), {.lr = tensor(0.01)});
  ExponentialLR sched(adam, {.gamma = 0.5});
  double seen = 0;
  auto step = compile(
      [&] {
        adam.step();
        seen = adam.parameters()[0].to_vector()[0];
        adam.step();
        sched.step();
      },
      {.policy = Policy::fail_on_recompile});
  for (int i = 0; i < 10; ++i) step();
  CHECK(step.counters().graph_breaks == 10);
  CHECK(step.counters().recompiles == 0);
}

// ---- reports as data --------------------------------------------------------

TEST_CASE("reports as data say what the log says") {
  LogCapture log(Log::recompiles);
  Pair pair(Policy::promote, 2);
  pair.call();
  CHECK(pair.step.recompile_reports().empty());
  pair.set("lr", 0.02);
  pair.set("eps", 0.5);
  pair.call();
  REQUIRE(pair.step.recompile_reports().size() == 1);
  const RecompileReport report = pair.step.recompile_reports()[0];
  CHECK(report.function == "step");
  CHECK(report.place.file == short_path(__FILE__));
  CHECK(report.failures ==
        std::vector<GuardFailure>{{"param_groups[0][\"lr\"]", 0.01, 0.02},
                                  {"param_groups[1][\"lr\"]", 0.01, 0.02},
                                  {"param_groups[0][\"eps\"]", 1e-8, 0.5},
                                  {"param_groups[1][\"eps\"]", 1e-8, 0.5}});
  CHECK(report.moved() == std::vector<std::string>{"param_groups[0][\"lr\"]",
                                                   "param_groups[1][\"lr\"]",
                                                   "param_groups[0][\"eps\"]",
                                                   "param_groups[1][\"eps\"]"});
  CHECK(log.take() == "[recompiles] " + to_string(report) + "\n");
  pair.set("weight_decay", 0.5);
  pair.call();
  REQUIRE(pair.step.recompile_reports().size() == 2);
  CHECK(pair.step.recompile_reports()[0].failures == report.failures);
  CHECK(pair.step.recompile_reports()[1].failures.empty());
}

TEST_CASE("a guarded NaN is itself, and reported as one") {
  const auto list = make_params({{3}}, 1);
  double number = std::numeric_limits<double>::quiet_NaN();
  auto step = compile([&] { foreach_fill_(list, number); },
                      {.policy = Policy::specialize});
  step();
  step();
  CHECK(step.counters().compilations == 1);
  number = 1;
  step();
  REQUIRE(step.recompile_reports().size() == 1);
  CHECK(testing::contains(to_string(step.recompile_reports()[0]), " == nan"));
}

TEST_CASE("a report says what is different about the lists") {
  const auto first_line_of_change = [](const TensorList& before,
                                       const TensorList& after) {
    TensorList list = before;
    auto step = compile([&] { foreach_mul_(list, 0.5); },
                        {.policy = Policy::fail_on_recompile});
    step();
    list = after;
    return testing::message_of<RecompileError>([&] { step(); });
  };
  const Tensor matrix = zeros({3, 3});
  const TensorList plain({matrix}, "l");
  const auto differs = [&](const Tensor& tensor) {
    return first_line_of_change(plain, TensorList({tensor}, "l"));
  };
  CHECK(testing::contains(differs(zeros({3, 3}).t()),
                          "\n    - l was contiguous, now strided\n"));
  CHECK(testing::contains(differs(zeros({3, 3}, DType::float64)),
                          "\n    - l was float32, now float64\n"));
  CHECK(testing::contains(differs(zeros({3, 3}).to(parse_device("cuda-sim"))),
                          "\n    - l was on cpu, now on cuda-sim\n"));
  CHECK(testing::contains(differs(zeros({3, 3}).t()),
                          "compile a separate function"));
}
