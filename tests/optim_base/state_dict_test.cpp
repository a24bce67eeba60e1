#include "fusebook/optim_base/state_dict.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/optim/all.h"
#include "fusebook/support/error.h"
#include "support/checkpoint_testing.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace checkpoint_testing;
using namespace step_testing;
using testing::message_of;

namespace {

// Everything of an optimizer, and its parameters.
std::string bits(Optimizer& opt) { return bits_of(opt, SchedulerState()); }

void steps(Optimizer& opt, int first, int last) {
  for (int n = first; n <= last; ++n) {
    testing::Random random{std::uint64_t(n)};
    for (const Tensor& param : opt.parameters()) {
      param.grad().copy_(
          random_tensor(param.shape(), random, 0.25, param.dtype()));
    }
    opt.step();
  }
}

void copy_params(Optimizer& to, const Optimizer& from) {
  auto params = to.parameters();
  for (std::size_t i = 0; i < params.size(); ++i) {
    params[i].copy_(from.parameters()[i]);
  }
}

NamedParams named(const std::vector<std::string>& names) {
  NamedParams all;
  for (std::size_t i = 0; i < names.size(); ++i) {
    all.emplace_back(names[i], make_params({{3}}, i + 1)[0]);
  }
  return all;
}

}  // namespace

TEST_CASE("every optimizer goes on from a state dict, bit for bit") {
  for (const Kind& kind : kinds()) {
    for (const bool tensors : {false, true}) {
      CAPTURE(kind.name);
      CAPTURE(tensors);
      const OptimizerPtr one = kind.make(tensors);
      const OptimizerPtr two = kind.make(tensors);
      one->group(0)["lr"].assign(0.5);
      steps(*one, 1, 2);
      const StateDict dict = one->state_dict();
      CHECK(dict.optimizer == kind.name);
      CHECK(dict.steps == 2);
      CHECK(dict.param_groups.size() == one->group_count());
      copy_params(*two, *one);
      two->load_state_dict(dict);
      CHECK(bits(*two) == bits(*one));
      // It is a copy: steps of one are not seen by the other.
      const std::string before = bits(*two);
      steps(*one, 3, 4);
      CHECK(bits(*two) == before);
      steps(*two, 3, 4);
      CHECK(bits(*two) == bits(*one));
    }
  }
}

TEST_CASE("its structure is torch's") {
  const auto params = make_params({{2}, {3}, {4}}, 1);
  Tensor without = params[1];
  without.set_grad({});
  SGD sgd({{{params[0]}}, {{params[1], params[2]}, {.lr = 0.25}}},
          {.lr = 0.5, .momentum = 0.9});
  sgd.group(1).initial_lr = 0.125;
  sgd.step();
  const StateDict dict = sgd.state_dict();
  REQUIRE(dict.param_groups.size() == 2);
  CHECK(dict.param_groups[0].params == std::vector<std::size_t>{0});
  CHECK(dict.param_groups[1].params == std::vector<std::size_t>{1, 2});
  CHECK(dict.param_groups[1].initial_lr == 0.125);
  CHECK(dict.state.size() == 2);  // number 1 had no step
  CHECK(dict.state.at(0).at("momentum_buffer").impl() ==
        sgd.state(params[0], "momentum_buffer").impl());
  CHECK(dict.state.at(2).at("step").item() == 1);
  std::vector<std::string> names;
  for (const auto& [name, value] : dict.param_groups[0].options) {
    names.push_back(name);
  }
  CHECK(names == std::vector<std::string>{"lr", "momentum", "dampening",
                                          "weight_decay", "nesterov",
                                          "maximize"});
  CHECK(std::get<Scalar>(dict.param_groups[1].options[0].second).value() ==
        0.25);
}

TEST_CASE("a loaded optimizer is compiled once, and switches come along") {
  const auto params = make_params(mixed_shapes(4), 1);
  Adam trained(params, {.lr = 0.5, .amsgrad = true});
  trained.step();
  const auto fresh = copies(params);
  Adam loaded(fresh, {.lr = 0.25});
  loaded.load_state_dict(trained.state_dict());
  CHECK(loaded.param_groups[0].options.amsgrad);
  auto step = compile([&] { loaded.step(); });
  step();
  step();
  trained.step();
  trained.step();
  CHECK(same_bits(fresh, params));
  CHECK(step.counters().compilations == 1);
  CHECK(step.counters().launches == 2);
  // In place: what was compiled stays.
  loaded.load_state_dict(trained.state_dict());
  step();
  CHECK(step.counters().compilations == 1);
}

TEST_CASE("a tensor rate stays the tensor that it is") {
  const auto params = make_params({{4}}, 1);
  const Tensor rate = tensor(0.5);
  Adam with_tensor(params, {.lr = rate});
  Adam with_number(copies(params), {.lr = 0.25});
  with_tensor.load_state_dict(with_number.state_dict());
  CHECK(rate.item() == 0.25);
  CHECK(with_tensor.group(0)["lr"].tensor().impl() == rate.impl());
  with_number.load_state_dict(with_tensor.state_dict());
  REQUIRE(with_number.group(0)["lr"].is_tensor());
  CHECK(with_number.group(0)["lr"].tensor().impl() != rate.impl());
}

TEST_CASE("parameters with names are known by them") {
  Adam one(named({"weight", "bias"}));
  one.step();
  Adam two(named({"bias", "weight"}));
  two.load_state_dict(one.state_dict());
  CHECK(same_bits(two.state(two.parameters()[0], "exp_avg"),
                  one.state(one.parameters()[1], "exp_avg")));
  Adam renamed(named({"weight", "offset"}));
  renamed.step();
  const std::string before = bits(renamed);
  CHECK(message_of<Error>([&] { renamed.load_state_dict(one.state_dict()); }) ==
        "cannot load the state dict: param_groups[0] has different names: "
        "\"offset\" missing in the state dict, \"bias\" unknown here; if they "
        "were "
        "renamed, load with .renames = {{\"bias\", \"offset\"}}");
  CHECK(bits(renamed) == before);
  renamed.load_state_dict(one.state_dict(), {.renames = {{"bias", "offset"}}});
  CHECK(same_bits(renamed.state(renamed.parameters()[1], "exp_avg"),
                  one.state(one.parameters()[1], "exp_avg")));
  CHECK(message_of<Error>([&] {
          renamed.load_state_dict(one.state_dict(), {.renames = {{"b", "c"}}});
        }) ==
        "cannot load the state dict: renames lists \"b\", but no parameter has "
        "that name in the state dict");
  StateDict cut = one.state_dict();
  cut.param_groups[0].param_names.pop_back();
  CHECK(message_of<Error>([&] { one.load_state_dict(cut); }) ==
        "cannot load the state dict: param_groups[0] has 1 names for 2 "
        "parameters");
  // Without names on one side, order decides.
  Adam unnamed(make_params({{3}, {3}}, 5));
  CHECK_NOTHROW(unnamed.load_state_dict(one.state_dict()));
}

TEST_CASE("what does not fit is named, and nothing changes") {
  Adam one(make_params({{3}}, 1));
  one.step();
  const StateDict dict = one.state_dict();
  const auto refusal = [&](Optimizer& opt, const StateDict& wrong) {
    const std::string before = bits(opt);
    const std::string message =
        message_of<Error>([&] { opt.load_state_dict(wrong); });
    CHECK(bits(opt) == before);
    const std::string start = "cannot load the state dict: ";
    REQUIRE(message.starts_with(start));
    return message.substr(start.size());
  };
  AdamW other(make_params({{3}}, 1));
  CHECK(refusal(other, dict) == "it was saved by Adam, but this is AdamW");
  Adam groups({{make_params({{3}}, 1)}, {make_params({{3}}, 2)}});
  CHECK(refusal(groups, dict) ==
        "it has 1 parameter groups, but this optimizer has 2");
  Adam sizes(make_params({{3}, {3}}, 1));
  CHECK(refusal(sizes, dict) ==
        "param_groups[0] has 1 parameters in the state dict, but 2 here");
  Adam shape(make_params({{4}}, 1));
  CHECK(refusal(shape, dict) ==
        "state[0].exp_avg has shape [3] and float32, but must have shape [4] "
        "and float32");
  StateDict wrong = dict;
  wrong.state.at(0).erase("step");
  CHECK(refusal(one, wrong) == "state[0].step is missing");
  wrong = dict;
  wrong.param_groups[0].options.erase(wrong.param_groups[0].options.begin());
  CHECK(refusal(one, wrong) == "param_groups[0] has no \"lr\"");
  wrong = dict;
  wrong.param_groups[0].options[0].second = true;
  CHECK(refusal(one, wrong) ==
        "param_groups[0]: \"lr\" takes a number, not true or false");
  wrong = dict;
  wrong.state[7] = dict.state.at(0);
  CHECK(refusal(one, wrong) ==
        "state[7] is of a parameter that is in none of its groups");
  wrong = dict;
  wrong.param_groups[0].options.push_back(wrong.param_groups[0].options[0]);
  CHECK(refusal(one, wrong) == "param_groups[0] has \"lr\" twice");
  Adam pair(make_params({{3}, {3}}, 1));
  wrong = pair.state_dict();
  wrong.param_groups[0].params[1] = 0;
  CHECK(refusal(pair, wrong) == "parameter 0 is in param_groups[0] twice");
  wrong = groups.state_dict();
  wrong.param_groups[1].params[0] = 0;
  CHECK(refusal(groups, wrong) ==
        "parameter 0 is in param_groups[0] and param_groups[1]");
  auto inside = compile([&] { one.load_state_dict(dict); });
  CHECK(testing::contains(message_of<Error>([&] { inside(); }),
                          "load between two steps"));
}

TEST_CASE("states to prepare are those of each parameter") {
  const Adam adam({zeros({2}), zeros({3})});
  std::vector<ParamStates> states(1);
  CHECK(message_of<Error>(
            [&] { adam.prepare_states(adam.parameters(), states); }) ==
        "prepare_states: there are 2 parameters but the states of 1; pass the "
        "states of each parameter, in the same order");
}
