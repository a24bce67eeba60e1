// Parameter groups: how they come to an optimizer, and what they are called.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/optim/all.h"
#include "fusebook/support/error.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;
using testing::message_of;

namespace {

Tensor with_gradient(double gradient) {
  Tensor param = zeros({2});
  param.set_grad(full({2}, gradient));
  return param;
}

double first(const Tensor& tensor) { return tensor.to_vector()[0]; }

// Of the call, which optimizer_calls_test looks at.
std::string without_place(const std::string& message) {
  const std::size_t begin = message.find(", at ");
  if (begin == std::string::npos) return message;
  const std::size_t end = message.find_first_of(";", begin);
  return message.substr(0, begin) +
         (end == std::string::npos ? "" : message.substr(end));
}

template <class Call>
std::string refused(const Call& call) {
  return without_place(message_of<Error>(call));
}

}  // namespace

// ---- add_param_group --------------------------------------------------------

TEST_CASE("a group that is added has what the constructor was given") {
  Adam adam({with_gradient(1)}, {.lr = 0.5,
                                 .betas = {0.25, 0.75},
                                 .weight_decay = 0.125,
                                 .amsgrad = true});
  adam.param_groups[0]["lr"] = 7;  // not what it was made with
  adam.add_param_group({with_gradient(1)});
  adam.add_param_group({with_gradient(1)},
                       {{"betas[1]", 0.5}, {"amsgrad", false}, {"lr", 2}});
  adam.add_param_group({{with_gradient(1)}, {.lr = 4}});
  REQUIRE(adam.group_count() == 4);
  const auto numbers = [&](std::size_t g) {
    std::vector<double> all;
    for (const auto& [name, number] : adam.group(g).numbers()) {
      all.push_back(number->value());
    }
    all.push_back(double(adam.param_groups[g].options.amsgrad));
    return all;
  };
  CHECK(numbers(1) == std::vector<double>{0.5, 0.25, 0.75, 1e-8, 0.125, 1});
  CHECK(numbers(2) == std::vector<double>{2, 0.25, 0.5, 1e-8, 0.125, 0});
  CHECK(numbers(3) == std::vector<double>{4, 0.9, 0.999, 1e-8, 0, 0});
  CHECK(adam.defaults.lr.value() == 0.5);
}

TEST_CASE("groups of a constructor take its options where they have none") {
  SGD sgd({{{with_gradient(1)}}, {{with_gradient(1)}, {.lr = 0.25}}},
          {.lr = 0.5, .momentum = 0.9});
  CHECK(sgd.group(0)["lr"].value() == 0.5);
  CHECK(sgd.group(0)["momentum"].value() == 0.9);
  CHECK(sgd.group(1)["lr"].value() == 0.25);
  CHECK(sgd.group(1)["momentum"].value() == 0);

  AdamW adamw(std::vector<AdamW::Group>{{{with_gradient(1)}}}, {.lr = 0.5});
  CHECK(adamw.group(0)["lr"].value() == 0.5);
  CHECK(adamw.group(0)["weight_decay"].value() == 0.01);
  adamw.add_param_group({with_gradient(1)});
  CHECK(adamw.group(1)["weight_decay"].value() == 0.01);
  CHECK(adamw.param_groups[1].options.decoupled_weight_decay);
}

TEST_CASE("a group that is pushed without options takes the constructor's") {
  const auto numbers = [](Adam& adam, std::size_t g) {
    std::vector<double> all;
    for (const auto& [name, number] : adam.group(g).numbers()) {
      all.push_back(number->value());
    }
    for (const auto& [name, on] : adam.group(g).flags()) all.push_back(*on);
    return all;
  };
  for (const bool by_step : {false, true}) {
    Adam adam({with_gradient(1)}, {.lr = 0.5,
                                   .betas = {0.25, 0.75},
                                   .weight_decay = 0.125,
                                   .amsgrad = true});
    adam.param_groups.emplace_back(std::vector{with_gradient(1)});
    // Set before the optimizer sees it.
    adam.param_groups.emplace_back(std::vector{with_gradient(1)});
    Adam::Group& third = adam.param_groups.back();
    third["lr"] = tensor(0.25);
    third["betas[1]"] = 0.5;
    third.options.maximize = true;
    adam.param_groups.push_back({{with_gradient(1)}, {.lr = 4}});
    if (by_step) {
      adam.step();
      const auto stepped = [&](std::size_t g) {
        return adam.param_groups[g].params[0].to_vector();
      };
      CHECK(stepped(1) == stepped(0));
      CHECK(stepped(3) != stepped(0));
    }
    CHECK(numbers(adam, 1) == numbers(adam, 0));
    CHECK(numbers(adam, 2) ==
          std::vector<double>{0.25, 0.25, 0.5, 1e-8, 0.125, 1, 1, 0});
    CHECK(numbers(adam, 3) ==
          std::vector<double>{4, 0.9, 0.999, 1e-8, 0, 0, 0, 0});
    // From then on what is set stays, even what the class begins with.
    adam.param_groups[1]["lr"] = 1e-3;
    adam.step();
    CHECK(adam.group(1)["lr"].value() == 1e-3);
  }
}

TEST_CASE("a group added at half time steps with the others in one launch") {
  for (const Backend backend : {Backend::compiled, Backend::interpreted}) {
    const Tensor early = with_gradient(1);
    const Tensor late = with_gradient(1);
    SGD sgd({early}, {.lr = 1, .momentum = 0.5});
    auto step = compile([&] { sgd.step(); }, {.backend = backend});
    step();
    step();
    CHECK(first(early) == -2.5);  // 1 + 1.5
    sgd.add_param_group({late}, {{"lr", tensor(2)}});
    step();
    CHECK(first(early) == -4.25);  // 1.75 more
    CHECK(first(late) == -2);
    CHECK(sgd.state(early, "step").item() == 3);
    CHECK(sgd.state(late, "step").item() == 1);
    sgd.zero_grad(false);
    CHECK(first(late.grad()) == 0);
    CHECK(step.counters().launches == 3);
    CHECK(sgd.steps() == 3);
    CHECK(sgd.parameters().size() == 2);
  }
}

TEST_CASE("a group that cannot be added says why and changes nothing") {
  const Tensor weight = with_gradient(1);
  const Tensor bias = with_gradient(1);
  SGD sgd({{{weight, bias}}}, {.lr = 1});
  const auto refusal = [&](std::vector<Tensor> params,
                           const GroupOptions& options = {}) {
    const std::string message = message_of<Error>(
        [&] { sgd.add_param_group(std::move(params), options); });
    CHECK(sgd.group_count() == 1);
    return without_place(message);
  };
  CHECK(refusal({zeros({1}), bias}) ==
        "optimizer: parameter 1 of group 1 is the same tensor as parameter 1 "
        "of group 0; put each parameter in one group only");
  const Tensor fresh = zeros({1});
  CHECK(refusal({fresh, zeros({1}), fresh}) ==
        "optimizer: parameter 2 of group 1 is the same tensor as parameter 0 "
        "of that group; list each parameter once");
  CHECK(refusal({Tensor()}) ==
        "optimizer: parameter 0 of group 1 is an undefined tensor");
  CHECK(refusal({fresh}, {{"lr", -1}}) == "SGD: invalid learning rate: -1");
  CHECK(refusal({fresh}, {{"beta", 0.5}}) ==
        "a parameter group of this optimizer has no \"beta\"; it has lr, "
        "momentum, dampening, weight_decay, nesterov, maximize");
  CHECK(refusal({fresh}, {{"nesterov", 1}}) ==
        "\"nesterov\" takes true or false, not a number");
  CHECK(refusal({fresh}, {{"lr", true}}) ==
        "\"lr\" takes a number, not true or false");
}

TEST_CASE("options that are set are all set, or none") {
  SGD sgd({zeros({1})}, {.lr = 1});
  SGD::Group& group = sgd.param_groups[0];
  CHECK_THROWS_AS(group.set({{"lr", 3}, {"typo", 1}}), Error);
  CHECK(group["lr"].value() == 1);
  group.set({{"lr", 3}, {"maximize", true}, {"initial_lr", 0.25}});
  CHECK(group["lr"].value() == 3);
  CHECK(group.options.maximize);
  CHECK(group.initial_lr == 0.25);
}

// ---- names ------------------------------------------------------------------

TEST_CASE("parameters may have names") {
  const Tensor weight = with_gradient(1);
  const Tensor bias = with_gradient(1);
  SGD sgd(NamedParams{{"weight", weight}, {"bias", bias}}, {.lr = 1});
  CHECK(sgd.param_groups[0].param_names ==
        std::vector<std::string>{"weight", "bias"});
  CHECK(sgd.param_groups[0].params[1].impl() == bias.impl());
  sgd.add_param_group(NamedParams{{"head", with_gradient(1)}}, {{"lr", 2}});
  sgd.step();
  CHECK(first(sgd.parameters()[2]) == -2);
  CHECK(refused([&] { sgd.add_param_group(NamedParams{{"other", weight}}); }) ==
        "optimizer: parameter 0 of group 2 (\"other\") is the same tensor as "
        "parameter 0 of group 0 (\"weight\"); put each parameter in one "
        "group only");
  CHECK(refused(
            [&] { sgd.add_param_group(NamedParams{{"bias", zeros({1})}}); }) ==
        "optimizer: two parameters are named \"bias\"; give each its "
        "own name");
  CHECK(refused([&] { sgd.add_param_group({zeros({1})}); }) ==
        "optimizer: the parameters of group 1 have names, but those of group "
        "2 do not; name all of them or none");
  CHECK(sgd.group_count() == 2);
  sgd.param_groups[0].params.push_back(zeros({1}));
  CHECK(refused([&] { sgd.step(); }) ==
        "optimizer: group 0 has 2 names for 3 parameters; give each a name, or "
        "none");
}

TEST_CASE("what AdamW refuses, AdamW says") {
  CHECK(message_of<Error>([] { AdamW({zeros({1})}, {.lr = -1}); }) ==
        "AdamW: invalid learning rate: -1");
  AdamW adamw({zeros({1})});
  CHECK(refused([&] {
          adamw.add_param_group({zeros({1})}, {{"betas[1]", 1.5}});
        }) == "AdamW: invalid beta parameter at index 1: 1.5");
  CHECK(refused([&] { adamw.group(1); }) ==
        "AdamW: parameter group 1 is out of range; group_count() is 1");
}
