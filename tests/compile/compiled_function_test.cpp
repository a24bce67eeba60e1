#include "fusebook/compile/compiled_function.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/optim/adam.h"
#include "fusebook/reports/counters.h"
#include "fusebook/support/error.h"
#include "fusebook/support/source_place.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;

namespace {

// A compiled optimizer beside an eager one with equal parameters.
class Pair {
 public:
  explicit Pair(std::vector<double> rates, bool tensors = false) {
    std::vector<Adam::Group> mine;
    std::vector<Adam::Group> theirs;
    for (std::size_t g = 0; g < rates.size(); ++g) {
      const auto params = make_params(mixed_shapes(5), g);
      mine.emplace_back(params, options(rates[g], tensors));
      theirs.emplace_back(copies(params), options(rates[g], tensors));
    }
    compiled_ = std::make_unique<Adam>(mine);
    eager_ = std::make_unique<Adam>(theirs);
  }

  // Gives a hyper-parameter of one group another value on both sides.
  void set(std::size_t group, const std::string& name, double value) {
    compiled_->param_groups[group][name].assign(value);
    eager_->param_groups[group][name].assign(value);
  }
  void set_all(const std::string& name, double value) {
    for (std::size_t g = 0; g < compiled_->param_groups.size(); ++g) {
      set(g, name, value);
    }
  }

  // One step on both sides; true when they still have the same bits.
  bool step() {
    step_();
    eager_->step();
    return same_bits(compiled_->parameters(), eager_->parameters());
  }
  bool steps(int count) {
    bool same = true;
    for (int i = 0; i < count; ++i) same = step() && same;
    return same;
  }

  const Counters& counters() const { return step_.counters(); }

 private:
  static AdamOptions options(double rate, bool tensors) {
    AdamOptions options;
    options.lr = tensors ? Scalar(tensor(rate)) : Scalar(rate);
    return options;
  }

  std::unique_ptr<Adam> compiled_;
  std::unique_ptr<Adam> eager_;
  struct Step {
    Pair* pair;
    void operator()() const { pair->compiled_->step(); }
  };
  Compiled<Step> step_ = compile(Step{this});
};

void check_counts(const Counters& counters, long compilations) {
  CHECK(counters.compilations == compilations);
  CHECK(counters.recompiles == compilations - 1);
}

}  // namespace

TEST_CASE("a float that moves at every call recompiles once") {
  Pair pair({0.01});
  for (int i = 0; i < 20; ++i) {
    pair.set(0, "lr", 0.01 / (i + 1));
    CHECK(pair.step());
  }
  check_counts(pair.counters(), 2);
  CHECK(pair.counters().launches == 20);
}

TEST_CASE("so it does in several groups") {
  Pair pair({0.01, 0.01, 0.01});
  for (int i = 0; i < 10; ++i) {
    pair.set_all("lr", 0.01 / (i + 1));
    CHECK(pair.step());
  }
  check_counts(pair.counters(), 2);
  CHECK(pair.counters().launches == 10);
}

TEST_CASE("a group that moves alone promotes the number for all groups") {
  Pair pair({0.01, 0.01, 0.01});
  CHECK(pair.step());
  pair.set(1, "lr", 0.02);
  CHECK(pair.step());
  check_counts(pair.counters(), 2);
  for (const std::size_t group : {0U, 2U, 1U}) {
    pair.set(group, "lr", 0.003);
    CHECK(pair.step());
  }
  check_counts(pair.counters(), 2);
}

TEST_CASE("so it does where groups are different code") {
  const auto params = make_params({{3}, {4}}, 1);
  Adam adam({{{params[0]}, {.lr = 0.01}},
             {{params[1]}, {.lr = 0.01, .amsgrad = true}}});
  auto step = compile([&] { adam.step(); });
  step();
  adam.param_groups[1]["lr"] = 0.02;
  step();
  adam.param_groups[0]["lr"] = 0.03;
  step();
  check_counts(step.counters(), 2);
}

TEST_CASE("groups that differ from the start never recompile") {
  Pair pair({0.01, 0.02, 0.03});
  CHECK(pair.step());
  for (int i = 0; i < 5; ++i) {
    pair.set_all("lr", 0.05 / (i + 1));  // now all the same, and moving
    CHECK(pair.step());
  }
  check_counts(pair.counters(), 1);
}

TEST_CASE("a number may begin to move after many calls") {
  Pair pair({0.01});
  CHECK(pair.steps(40));
  check_counts(pair.counters(), 1);
  for (int i = 0; i < 5; ++i) {
    pair.set(0, "lr", 0.02 + i);
    CHECK(pair.step());
  }
  check_counts(pair.counters(), 2);
}

TEST_CASE("a tensor never recompiles, in one group or several") {
  for (const std::size_t groups : {1U, 3U}) {
    Pair pair(std::vector<double>(groups, 0.01), true);
    for (int i = 0; i < 13; ++i) {
      pair.set_all("lr", 0.01 / (i + 1));
      CHECK(pair.step());
    }
    check_counts(pair.counters(), 1);
    CHECK(pair.counters().uploads == 1);
  }
}

TEST_CASE("a value that comes back finds the promoted kernel") {
  Pair pair({0.01});
  for (const double rate : {0.01, 0.02, 0.01, 0.02, 0.01}) {
    pair.set(0, "lr", rate);
    CHECK(pair.step());
  }
  check_counts(pair.counters(), 2);
}

TEST_CASE("the first number that moves pays for all of them") {
  const std::vector<std::string> names = {"lr", "betas[0]", "betas[1]", "eps"};
  for (const std::size_t groups : {1U, 2U}) {
    for (std::size_t first = 0; first < names.size(); ++first) {
      Pair pair(std::vector<double>(groups, 0.01));
      CHECK(pair.step());
      for (std::size_t i = 0; i < names.size(); ++i) {
        const std::string& name = names[(first + i) % names.size()];
        pair.set(groups - 1, name, 0.5 / double(i + 2));
        CHECK(pair.steps(2));
        check_counts(pair.counters(), 2);
      }
      for (const std::string& name : names) pair.set_all(name, 0.125);
      CHECK(pair.step());
      check_counts(pair.counters(), 2);
    }
  }
}

TEST_CASE("what operations are recorded stays the function's own decision") {
  LogCapture log(Log::recompiles);
  Pair pair({0.01});
  CHECK(pair.step());
  pair.set(0, "lr", 0.02);
  CHECK(pair.step());
  check_counts(pair.counters(), 2);
  log.take();
  // More operations: they are new, and the numbers in them inputs at once.
  pair.set(0, "weight_decay", 0.1);
  CHECK(pair.step());
  check_counts(pair.counters(), 3);
  CHECK(testing::contains(
      log.take(),
      "\n    - the recorded operations differ: "
      "param_groups[0][\"weight_decay\"] was 0 and is 0.1, which adds "
      "add_scaled (step() at tests/"));
  for (int i = 0; i < 5; ++i) {
    pair.set(0, "weight_decay", 0.01 * (i + 1));
    pair.set(0, "eps", 1e-8 * (i + 1));
    CHECK(pair.step());
  }
  pair.set(0, "weight_decay", 0.0);
  CHECK(pair.step());
  check_counts(pair.counters(), 3);
}

TEST_CASE("numbers that move together cost one recompile") {
  Pair pair({0.01, 0.01});
  for (int i = 0; i < 6; ++i) {
    pair.set_all("lr", 0.01 + i);
    pair.set_all("betas[0]", 0.9 - 0.01 * i);
    pair.set_all("betas[1]", 0.999 - 0.01 * i);
    CHECK(pair.step());
  }
  check_counts(pair.counters(), 2);
}

TEST_CASE("turning weight decay on is another program, and said to be one") {
  LogCapture log(Log::recompiles);
  Pair pair({0.01});
  CHECK(pair.step());
  pair.set(0, "weight_decay", 0.1);
  CHECK(pair.step());
  check_counts(pair.counters(), 2);
  CHECK(testing::contains(
      log.take(),
      "\n    - the recorded operations differ: "
      "param_groups[0][\"weight_decay\"] was 0 and is 0.1, which adds "
      "add_scaled (step() at tests/"));
  pair.set(0, "weight_decay", 0.0);
  CHECK(pair.step());
  check_counts(pair.counters(), 2);
}

TEST_CASE("numbers in the function itself are promoted by their place") {
  const auto list = make_params({{3}, {2}}, 1);
  const auto eager = copies(list);
  double factor = 1.5;
  double shift = 0.25;
  auto step = compile([&] {
    foreach_mul_(list, factor);
    foreach_add_(list, shift);
  });
  const auto both = [&] {
    step();
    foreach_mul_(eager, factor);
    foreach_add_(eager, shift);
    return same_bits(list, eager);
  };
  CHECK(both());
  factor = 0.75;
  CHECK(both());
  factor = 1.25;
  CHECK(both());
  check_counts(step.counters(), 2);
  shift = -1;
  CHECK(both());
  shift = 2;
  factor = 3;
  CHECK(both());
  check_counts(step.counters(), 3);
}

TEST_CASE("bits are guarded: -0 is another number than 0, and NaN is itself") {
  const auto list = make_params({{3}}, 1);
  double number = 0.0;
  auto step = compile([&] { foreach_fill_(list, number); });
  step();
  CHECK_FALSE(std::signbit(list[0].to_vector()[0]));
  number = -0.0;
  step();
  CHECK(std::signbit(list[0].to_vector()[0]));
  check_counts(step.counters(), 2);
  number = 1;
  step();
  CHECK(list[0].to_vector()[0] == 1);
  check_counts(step.counters(), 2);

  number = std::numeric_limits<double>::quiet_NaN();
  auto other = compile([&] { foreach_fill_(list, number); });
  other();
  other();
  CHECK(std::isnan(list[0].to_vector()[0]));
  check_counts(other.counters(), 1);
}

TEST_CASE("another dtype is another program; its own kernel is kept") {
  auto step = compile([](Adam& adam) { adam.step(); });
  Adam singles(make_params(mixed_shapes(3), 1, DType::float32));
  Adam doubles(make_params(mixed_shapes(3), 1, DType::float64));
  step(singles);
  step(doubles);
  check_counts(step.counters(), 2);
  step(singles);
  step(doubles);
  check_counts(step.counters(), 2);
}

// ---- the report -------------------------------------------------------------

TEST_CASE("the report of a failed guard has the shape people know") {
  LogCapture log(Log::recompiles);
  const auto params = make_params({{3}}, 1);
  Adam adam({{{params[0]}, {.lr = 0.01}}});
  const int line = __LINE__ + 1;
  auto step = compile([&] { adam.step(); });
  step();
  CHECK(log.take().empty());
  adam.param_groups[0]["lr"] = 0.02;
  step();
  const std::string head =
      "[recompiles] Recompiling function step in " + short_path(__FILE__) +
      ":" + std::to_string(line) +
      "\n    triggered by the following guard failure(s):\n";
  CHECK(log.take() == head + "    - param_groups[0][\"lr\"] == 0.01\n");
  adam.param_groups[0]["lr"] = 0.03;
  step();
  CHECK(log.take().empty());
}

TEST_CASE("the report lists all failures, those of the newest kernel first") {
  LogCapture log(Log::recompiles);
  Adam adam({{make_params({{3}}, 1), {.lr = 1e-4}},
             {make_params({{4}}, 2), {.lr = 1e-4}}});
  auto step = compile([&] { adam.step(); }, {.name = "train"});
  step();
  for (auto& group : adam.param_groups) group["betas[1]"] = 0.99;
  step();
  const std::string text = log.take();
  CHECK(testing::contains(text, "Recompiling function train in "));
  CHECK(testing::contains(text,
                          "guard failure(s):\n"
                          "    - param_groups[0][\"betas\"][1] == 0.999\n"
                          "    - param_groups[1][\"betas\"][1] == 0.999\n"));
  CHECK(jit_testing::count_of(text, "\n    - ") == 2);

  for (auto& group : adam.param_groups) group["lr"] = 1e-8;
  step();
  CHECK(log.take().empty());
}

TEST_CASE("the report names the place of a number in the function") {
  LogCapture log(Log::recompiles);
  const auto list = make_params({{3}}, 1);
  double factor = 2;
  const int line = __LINE__ + 1;
  auto step = compile([&] { foreach_mul_(list, factor); });
  step();
  factor = 3;
  step();
  CHECK(testing::contains(log.take(), "\n    - scalar at " +
                                          short_path(__FILE__) + ":" +
                                          std::to_string(line) + " == 2\n"));
}

TEST_CASE("the report says when other operations were recorded") {
  LogCapture log(Log::recompiles);
  const auto list = make_params({{3}}, 1);
  bool twice = false;
  int line = 0;
  auto step = compile([&] {
    foreach_neg_(list);
    line = __LINE__ + 1;
    if (twice) foreach_abs_(list);
  });
  step();
  twice = true;
  step();
  CHECK(testing::contains(
      log.take(),
      "guard failure(s):\n    - the recorded operations differ: operation 2, "
      "abs at " +
          short_path(__FILE__) + ":" + std::to_string(line) + ", is new\n"));
}

// ---- what is compiled -------------------------------------------------------

TEST_CASE("the code of the newest kernel, and what it fuses, can be read") {
  const auto params = make_params({{3}}, 1);
  auto step = compile([&] { foreach_mul_(params, 0.5); });
  CHECK(step.output_code().empty());
  CHECK(step.summary().empty());
  step();
  CHECK(testing::contains(step.output_code(), "0x1p-1"));
  CHECK_FALSE(step.summary().empty());
}

TEST_CASE("the channel output_code shows each kernel once") {
  LogCapture log(Log::output_code);
  const auto params = make_params({{3}}, 1);
  auto step = compile([&] { foreach_mul_(params, 0.5); });
  step();
  CHECK(log.take() == "[output_code] \n" + step.output_code() + "\n");
  step();
  foreach_mul_(params, 0.5);
  CHECK(log.take().empty());
}

TEST_CASE("the channel graph shows what was recorded") {
  LogCapture log(Log::graph);
  const auto params = make_params({{3}}, 1);
  auto step = compile([&] { foreach_mul_(params, 0.5); }, {.name = "half"});
  step();
  const std::string text = log.take();
  CHECK(testing::contains(text, "[graph] half, as recorded\n"));
  CHECK(testing::contains(text, "= mul %0 %1"));
  CHECK(testing::contains(text, "-> slot0"));
}

TEST_CASE("one kernel text for any number of tensors") {
  std::vector<std::string> texts;
  for (const std::size_t count : {10U, 10000U}) {
    Adam adam(make_params(mixed_shapes(count), count));
    auto step = compile([&] { adam.step(); });
    step();
    texts.push_back(step.output_code());
  }
  CHECK(texts[0].size() > 200);
  CHECK(texts[0] == texts[1]);
}

TEST_CASE("one kernel text for any number of groups") {
  std::vector<std::string> texts;
  for (const int count : {2, 300}) {
    std::vector<Adam::Group> groups;
    for (int g = 0; g < count; ++g) {
      AdamOptions options;
      options.lr = 0.001 * (g + 1);
      groups.emplace_back(make_params(mixed_shapes(3), g), options);
    }
    Adam adam(groups);
    const auto eager_params = copies(adam.parameters());
    auto step = compile([&] { adam.step(); });
    step();
    CHECK(step.counters().launches == 1);
    CHECK(step.counters().compilations == 1);
    texts.push_back(step.output_code());

    for (int g = 0; g < count; ++g) {
      auto& group = groups[std::size_t(g)];
      group.params.assign(eager_params.begin() + 3 * g,
                          eager_params.begin() + 3 * (g + 1));
    }
    Adam eager(groups);
    eager.step();
    CHECK(same_bits(adam.parameters(), eager.parameters()));
  }
  CHECK(texts[0] == texts[1]);
}
