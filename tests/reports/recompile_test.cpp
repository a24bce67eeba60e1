// What a recompile says of operations that differ, in the words of who wrote
// the function.
#include "fusebook/reports/recompile.h"

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/optim/all.h"
#include "fusebook/support/error.h"
#include "fusebook/support/source_place.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;

namespace {

std::vector<Tensor> params_of(std::size_t group) {
  return make_params({{std::int64_t(group) + 2}, {3}}, group + 1);
}

// The line of a report that says what is different, without "    - ".
template <class Step>
std::string reason(Step& step) {
  REQUIRE(step.recompile_reports().size() == 1);
  const RecompileReport& report = step.recompile_reports()[0];
  CHECK(report.failures.empty());
  REQUIRE(report.changes.size() == 1);
  CHECK(testing::contains(to_string(report), "\n    - " + report.changes[0]));
  return report.changes[0];
}

const std::string differ = "the recorded operations differ: ";

// What is said after `change` was made to an optimizer of two groups.
template <class Optim, class Options>
std::string after(const Options& options,
                  const std::function<void(Optim&)>& change) {
  Optim optimizer({{params_of(0), options}, {params_of(1), options}});
  const int line = __LINE__ + 2;
  auto step =
      compile([&] { optimizer.step(); }, {.backend = Backend::interpreted});
  step();
  step();
  CHECK(step.recompile_reports().empty());
  change(optimizer);
  step();
  std::string text = reason(step);
  const std::string place =
      " (step() at tests/reports/recompile_test.cpp:" + std::to_string(line) +
      ")";
  REQUIRE(testing::contains(text, place));
  return text.erase(text.size() - place.size());
}

}  // namespace

TEST_CASE("a number that is zero no longer, and back") {
  CHECK(after<Adam>(
            AdamOptions{},
            [](Adam& adam) { adam.param_groups[1]["weight_decay"] = 0.1; }) ==
        differ +
            "param_groups[1][\"weight_decay\"] was 0 and is 0.1, which "
            "adds add_scaled");
  CHECK(after<SGD>(SGDOptions{.momentum = 0.9},
                   [](SGD& sgd) { sgd.param_groups[0]["momentum"] = 0.0; })
            .rfind(differ +
                       "param_groups[0][\"momentum\"] was 0.9 and is 0, which "
                       "drops ",
                   0) == 0);
}

TEST_CASE("a switch") {
  CHECK(after<Adam>(
            AdamOptions{},
            [](Adam& adam) { adam.param_groups[1].options.amsgrad = true; })
            .rfind(differ +
                       "param_groups[1][\"amsgrad\"] was false and is true, "
                       "which adds ",
                   0) == 0);
  CHECK(after<SGD>(
            SGDOptions{},
            [](SGD& sgd) { sgd.param_groups[0].options.maximize = true; }) ==
        differ +
            "param_groups[0][\"maximize\"] was false and is true, which "
            "adds neg");
}

TEST_CASE("a number that has become a tensor, and the other way round") {
  CHECK(after<SGD>(SGDOptions{.lr = 0.25}, [](SGD& sgd) {
          for (auto& group : sgd.param_groups) {
            group.options.lr = Scalar(tensor(0.25));
          }
        }) == differ + "param_groups[0][\"lr\"] was 0.25 and is a tensor");
  CHECK(after<Adam>(AdamOptions{.weight_decay = tensor(0.1)},
                    [](Adam& adam) {
                      adam.param_groups[1].options.weight_decay = 0.0;
                    }) ==
        differ +
            "param_groups[1][\"weight_decay\"] was a tensor and is 0, "
            "which drops add_scaled");
}

TEST_CASE("masters of a group") {
  Tensor param = full({3}, 1, DType::bfloat16);
  param.set_grad(full({3}, 1, DType::bfloat16));
  Adam adam({param});
  adam.use_master_weights();
  auto step = compile([&] { adam.step(); }, {.backend = Backend::interpreted});
  step();
  adam.use_master_weights(false);
  step();
  CHECK(reason(step).rfind(
            differ + "param_groups[0][\"master_weights\"] was true and is "
                     "false, which drops copy",
            0) == 0);
  auto other = compile([&] { adam.step(); }, {.backend = Backend::interpreted});
  other();
  adam.use_split_masters();
  other();
  CHECK(reason(other).rfind(
            differ + "param_groups[0][\"split_masters\"] was false and is "
                     "true, which adds ",
            0) == 0);
}

TEST_CASE("states in 8 bits, of a group that has some already") {
  Tensor first = full({300}, 1), second = full({300}, 1);
  for (Tensor each : {first, second}) each.set_grad(full({300}, 1));
  Adam adam({{{first}, AdamOptions{}}, {{second}, AdamOptions{}}});
  adam.use_8bit_states(true, 1);
  auto step = compile([&] { adam.step(); }, {.backend = Backend::interpreted});
  step();
  adam.group(1).states_8bit = false;
  step();
  CHECK(reason(step).rfind(differ +
                               "param_groups[1][\"states_8bit\"] was true and "
                               "is false",
                           0) == 0);
}

TEST_CASE("gradients of another dtype: no other list is blamed") {
  const auto params = params_of(0);
  Adam adam({{params, AdamOptions{}}});
  auto step = compile([&] { adam.step(); }, {.backend = Backend::interpreted});
  step();
  for (Tensor param : params) {
    param.set_grad(full(param.shape(), 1, DType::float64));
  }
  step();
  CHECK(reason(step) == "grads was float32, now float64");
}

TEST_CASE("operations beside a step name the call of the step") {
  const auto params = params_of(0);
  Adam adam({{params, AdamOptions{}}});
  int line = 0;
  const auto after_one_more = [&](const auto& more) {
    bool now = false;
    auto step = compile([&] { more(now); }, {.backend = Backend::interpreted});
    step();
    now = true;
    step();
    return reason(step);
  };
  const auto at = [&](int number) {
    return " at " + short_path(__FILE__) + ":" + std::to_string(number);
  };
  const std::string clipped = after_one_more([&](bool now) {
    line = __LINE__ + 1;
    if (now) foreach_neg_(TensorList(params));
    adam.step();
  });
  CHECK(clipped == differ + "operation 1 was add" + at(line + 1) +
                       " and is neg" + at(line));
  const std::string scaled = after_one_more([&](bool now) {
    line = __LINE__ + 1;
    now ? adam.step({.grad_scale = 2.0}) : adam.step();
  });
  CHECK(scaled ==
        differ + "operation 1 was add" + at(line) + " and is div" + at(line));
}

TEST_CASE("an index within a number") {
  CHECK(
      after<Adam>(AdamOptions{}, [](Adam& adam) {
        for (auto& group : adam.param_groups) {
          group.options.betas[1] = Scalar(tensor(0.99));
        }
      }) == differ + "param_groups[0][\"betas\"][1] was 0.999 and is a tensor");
}

TEST_CASE("another optimizer") {
  SGD sgd({{params_of(0), SGDOptions{}}});
  Adam adam({{params_of(1), AdamOptions{}}});
  int which = 0;
  auto step = compile([&] {
    if (which != 1) sgd.step();
    if (which != 0) adam.step();
  });
  step();
  which = 1;
  step();
  CHECK(reason(step).rfind(
            differ + "a step of Adam is recorded instead of one of SGD, which "
                     "adds ",
            0) == 0);
  auto more = compile([&] {
    sgd.step();
    if (which == 2) adam.step();
  });
  more();
  which = 2;
  more();
  CHECK(reason(more).rfind(
            differ + "a step of Adam is recorded as well, which adds ", 0) ==
        0);
}

TEST_CASE("a group whose parameters get their gradients later") {
  Adam adam({{params_of(0), AdamOptions{}},
             {params_of(1), AdamOptions{.maximize = true}}});
  std::vector<Tensor> grads;
  for (Tensor param : adam.param_groups[1].params) {
    grads.push_back(param.grad());
    param.set_grad(Tensor());
  }
  auto step = compile([&] { adam.step(); });
  step();
  for (std::size_t i = 0; i < grads.size(); ++i) {
    adam.param_groups[1].params[i].set_grad(grads[i]);
  }
  step();
  CHECK(reason(step).rfind(
            differ + "param_groups[1] is now updated: 2 parameters have a "
                     "gradient, which adds ",
            0) == 0);
  // To go again costs nothing, and nothing is said.
  for (Tensor param : adam.param_groups[1].params) param.set_grad(Tensor());
  step();
  CHECK(step.recompile_reports().size() == 1);
}

TEST_CASE("operations that no optimizer wrote: the first, with both places") {
  const TensorList list(make_params({{3}}, 1));
  int way = 0;
  int line = 0;
  const auto body = [&] {
    foreach_neg_(list);
    line = __LINE__ + 1;
    if (way == 1) foreach_abs_(list);
    if (way == 2) foreach_exp_(list);
    for (int i = 3; i <= way; ++i) foreach_mul_(list, 0.5);
  };
  const auto between = [&](int before, int now) {
    auto step = compile([&] { body(); }, {.backend = Backend::interpreted});
    way = before;
    step();
    way = now;
    step();
    return reason(step);
  };
  const auto at = [&](int number) {
    return " at " + short_path(__FILE__) + ":" + std::to_string(number);
  };
  const std::string first = between(1, 2);
  CHECK(first == differ + "operation 2 was abs" + at(line) + " and is exp" +
                     at(line + 1));
  CHECK(between(0, 1) == differ + "operation 2, abs" + at(line) + ", is new");
  CHECK(between(1, 0) == differ + "operation 2, abs" + at(line) + ", is gone");
  CHECK(between(3, 6) ==
        differ + "operation 3, mul" + at(line + 2) + ", is new, and 2 more");
  CHECK(between(4, 0) ==
        differ + "operation 2, mul" + at(line + 2) + ", is gone, and 1 more");
}

TEST_CASE("operations that differ: places come with the report") {
  const TensorList list(make_params({{3}}, 1));
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
  REQUIRE(step.recompile_reports().size() == 1);
  const auto places = step.recompile_reports()[0].places();
  REQUIRE(places.size() == 2);
  CHECK(places[1] == LogPlace{short_path(__FILE__), std::uint32_t(line)});
}

TEST_CASE("a limit says what differed last") {
  jit_testing::CapturedStderr captured;
  const TensorList list(make_params({{3}}, 1));
  int length = 0;
  auto step = compile(
      [&] {
        for (int i = 0; i < length; ++i) foreach_mul_(list, 0.5);
      },
      {.backend = Backend::interpreted});
  for (length = 1; length <= 10; ++length) step();
  CHECK(testing::contains(captured.stop(), "mul at " + short_path(__FILE__)));
}

TEST_CASE("an error of the policy gives the same reason") {
  Adam adam({{params_of(0), AdamOptions{}}});
  auto step =
      compile([&] { adam.step(); }, {.policy = Policy::fail_on_recompile});
  step();
  adam.param_groups[0].options.maximize = true;
  CHECK(testing::contains(
      testing::message_of<RecompileError>([&] { step(); }),
      "param_groups[0][\"maximize\"] was false and is true, which adds neg"));
}

TEST_CASE("options that change no operation are not named") {
  // Both moved and switched: the switch is what counts.
  CHECK(after<SGD>(SGDOptions{.lr = 0.25},
                   [](SGD& sgd) {
                     sgd.param_groups[0]["lr"] = 0.5;
                     sgd.param_groups[1].options.maximize = true;
                   }) ==
        differ +
            "param_groups[1][\"maximize\"] was false and is true, which "
            "adds neg");
}

TEST_CASE("a group that joins after the step is new in the next one") {
  Adam adam({{params_of(0), AdamOptions{}}});
  bool joins = true;
  auto step = compile(
      [&] {
        adam.step();
        if (joins) adam.add_param_group({params_of(1), {.amsgrad = true}});
        joins = false;
      },
      {.backend = Backend::interpreted});
  step();
  step();
  CHECK(testing::contains(reason(step), differ + "param_groups[1] is new, "));
}
