#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/support/error.h"
#include "support/lion.h"
#include "support/optimizer_rules.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace optimizer_rules;
using testing::contains;
using testing::message_of;

TEST_CASE("momentum may begin late: its first gradient enters whole") {
  Tensor param = single(1.0);
  set_grad(param, 0.5);
  SGD sgd({param}, {.lr = 0.125, .dampening = 0.75});
  auto step = compile([&] { sgd.step(); }, {.fullgraph = true});
  step();
  CHECK(first_of(param) == 1.0 - 0.125 * 0.5);
  CHECK(!sgd.state(param, "momentum_buffer").defined());
  sgd.param_groups[0].options.momentum = 0.5;
  step();
  CHECK(first_of(sgd.state(param, "momentum_buffer")) == 0.5);
  step();
  CHECK(first_of(sgd.state(param, "momentum_buffer")) == 0.25 + 0.25 * 0.5);
  // Off and on again: the buffer is still there.
  sgd.param_groups[0].options.momentum = 0.0;
  step();
  sgd.param_groups[0].options.momentum = 0.5;
  step();
  CHECK(first_of(sgd.state(param, "momentum_buffer")) ==
        0.5 * (0.25 + 0.25 * 0.5) + 0.25 * 0.5);
  CHECK(sgd.state(param, "step").item() == 5);
  CHECK(step.counters().launches == 5);
}

TEST_CASE("a tensor that is zero may move without a recompile") {
  Tensor param = single(1.0);
  set_grad(param, 0.5);
  const Tensor momentum = tensor(0.0);
  const Tensor weight_decay = tensor(0.0);
  SGD sgd({param},
          {.lr = 0.5, .momentum = momentum, .weight_decay = weight_decay});
  auto step = compile([&] { sgd.step(); }, {.fullgraph = true});
  step();
  CHECK(first_of(param) == 0.75);
  sgd.group(0)["momentum"].assign(0.5);
  step();
  CHECK(first_of(param) == 0.75 - 0.5 * 0.75);
  sgd.group(0)["weight_decay"].assign(2.0);
  step();
  CHECK(first_of(param) == 0.375 - 0.5 * (0.5 * 0.75 + 0.5 + 2 * 0.375));
  CHECK(step.counters().recompiles == 0);
}

TEST_CASE("RMSprop keeps its states when others come and go") {
  Tensor param = single(1.0, DType::float64);
  set_grad(param, 2.0);
  RMSprop rmsprop({param}, {.alpha = 0.5, .momentum = 0.5});
  rmsprop.step();
  const double buffer = first_of(rmsprop.state(param, "momentum_buffer"));
  rmsprop.param_groups[0].options.centered = true;
  rmsprop.param_groups[0].options.momentum = 0.0;
  rmsprop.step();
  CHECK(first_of(rmsprop.state(param, "square_avg")) == 3.0);
  CHECK(first_of(rmsprop.state(param, "grad_avg")) == 1.0);
  CHECK(first_of(rmsprop.state(param, "momentum_buffer")) == buffer);
}

TEST_CASE("states start from their options, and have their kinds") {
  const Tensor param = full({2, 3}, 1.0);
  set_grad(param, 0.0);
  Adagrad adagrad({param}, {.initial_accumulator_value = 0.5});
  Rprop rprop({param}, {.lr = tensor(0.25)});
  ASGD asgd({param}, {.lr = 0.25, .lambd = 0.0});
  NAdam nadam({param});
  CHECK(!adagrad.state(param, "sum").defined());
  adagrad.step();
  rprop.step();
  asgd.step();
  nadam.step();
  CHECK(adagrad.state(param, "sum").shape() == Shape{2, 3});
  CHECK(first_of(adagrad.state(param, "sum")) == 0.5);
  CHECK(first_of(rprop.state(param, "step_size")) == 0.25);
  CHECK(asgd.state(param, "eta").item() == 0.25);
  for (const char* name : {"eta", "mu"}) {
    CHECK(asgd.state(param, name).dim() == 0);
    CHECK(asgd.state(param, name).dtype() == DType::float64);
  }
  CHECK(nadam.state(param, "mu_product").dtype() == DType::float64);
  CHECK(!nadam.state(param, "nonsense").defined());
}

// ---- errors -----------------------------------------------------------------

namespace {

template <class Kind, class Options>
std::string refusal(const Options& options) {
  return message_of<Error>(
      [&] { Kind(std::vector<Tensor>{single(1)}, options); });
}

}  // namespace

TEST_CASE("what torch refuses is refused") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(refusal<SGD>(SGDOptions{.lr = -1.0}) ==
        "SGD: invalid learning rate: -1");
  CHECK(refusal<SGD>(SGDOptions{.lr = tensor(-0.5)}) ==
        "SGD: invalid learning rate: -0.5");
  CHECK(contains(refusal<SGD>(SGDOptions{.lr = nan}), "learning rate: nan"));
  CHECK(contains(refusal<SGD>(SGDOptions{.momentum = -1.0}),
                 "invalid momentum value: -1"));
  CHECK(contains(refusal<SGD>(SGDOptions{.weight_decay = -0.5}),
                 "invalid weight_decay value: -0.5"));
  const std::string nesterov =
      "SGD: Nesterov momentum requires a momentum and zero dampening";
  CHECK(refusal<SGD>(SGDOptions{.nesterov = true}) == nesterov);
  CHECK(refusal<SGD>(SGDOptions{
            .momentum = 0.9, .dampening = 0.1, .nesterov = true}) == nesterov);
  CHECK(contains(refusal<NAdam>(NAdamOptions{.momentum_decay = -1.0}),
                 "NAdam: invalid momentum_decay value: -1"));
  CHECK(contains(refusal<NAdam>(NAdamOptions{.eps = -1.0}),
                 "NAdam: invalid epsilon value: -1"));
  CHECK(refusal<RAdam>(RAdamOptions{.betas = {0.9, 1.0}}) ==
        "RAdam: invalid beta parameter at index 1: 1");
  CHECK(contains(refusal<Adamax>(AdamaxOptions{.betas = {-0.5, 0.9}}),
                 "Adamax: invalid beta parameter at index 0: -0.5"));
  CHECK(contains(refusal<Adagrad>(AdagradOptions{.lr_decay = -1.0}),
                 "Adagrad: invalid lr_decay value: -1"));
  CHECK(contains(
      refusal<Adagrad>(AdagradOptions{.initial_accumulator_value = -1.0}),
      "Adagrad: invalid initial_accumulator_value value: -1"));
  CHECK(refusal<Adadelta>(AdadeltaOptions{.rho = 1.5}) ==
        "Adadelta: invalid rho value: 1.5");
  CHECK(refusal<Adadelta>(AdadeltaOptions{.rho = 1.0}) == "no error");
  CHECK(contains(refusal<RMSprop>(RMSpropOptions{.alpha = -0.5}),
                 "RMSprop: invalid alpha value: -0.5"));
  CHECK(contains(refusal<RMSprop>(RMSpropOptions{.momentum = -0.5}),
                 "RMSprop: invalid momentum value: -0.5"));
  CHECK(contains(refusal<Rprop>(RpropOptions{.etas = {0.5, 1.0}}),
                 "Rprop: invalid eta values: 0.5, 1"));
  CHECK(contains(refusal<Rprop>(RpropOptions{.etas = {0.0, 1.2}}),
                 "Rprop: invalid eta values: 0, 1.2"));
  CHECK(contains(refusal<ASGD>(ASGDOptions{.weight_decay = -1.0}),
                 "ASGD: invalid weight_decay value: -1"));
  CHECK(contains(refusal<ASGD>(ASGDOptions{.lambd = -1.0}),
                 "ASGD: invalid lambd value: -1"));
  CHECK(contains(refusal<ASGD>(ASGDOptions{.alpha = -1.0}),
                 "ASGD: invalid alpha value: -1"));
  CHECK(refusal<AdEMAMix>(AdEMAMixOptions{.betas = {0.9, 0.9, 1.0}}) ==
        "AdEMAMix: invalid beta parameter at index 2: 1");
  CHECK(refusal<AdEMAMix>(AdEMAMixOptions{.alpha = -1.0}) ==
        "AdEMAMix: invalid alpha value: -1");
  CHECK(refusal<AdEMAMix>(AdEMAMixOptions{.t_alpha = -1.0}) ==
        "AdEMAMix: invalid t_alpha value: -1");
  CHECK(refusal<AdEMAMix>(AdEMAMixOptions{.t_beta3 = nan}) ==
        "AdEMAMix: invalid t_beta3 value: nan");
  CHECK(refusal<AdEMAMix>(AdEMAMixOptions{.eps = -1.0}) ==
        "AdEMAMix: invalid epsilon value: -1");
  CHECK(refusal<AdEMAMix>(AdEMAMixOptions{.weight_decay = -1.0}) ==
        "AdEMAMix: invalid weight_decay value: -1");
  CHECK(refusal<LAMB>(LAMBOptions{.betas = {0.9, 1.0}}) ==
        "LAMB: invalid beta parameter at index 1: 1");
  CHECK(refusal<LAMB>(LAMBOptions{.eps = -1.0}) ==
        "LAMB: invalid epsilon value: -1");
  CHECK(refusal<LAMB>(LAMBOptions{.weight_decay = -0.5}) ==
        "LAMB: invalid weight_decay value: -0.5");
  CHECK(refusal<LARS>(LARSOptions{.momentum = -0.5}) ==
        "LARS: invalid momentum value: -0.5");
  CHECK(refusal<LARS>(LARSOptions{.weight_decay = -0.5}) ==
        "LARS: invalid weight_decay value: -0.5");
  CHECK(refusal<LARS>(LARSOptions{.trust_coefficient = nan}) ==
        "LARS: invalid trust_coefficient value: nan");
  CHECK(refusal<LARS>(LARSOptions{.eps = -1.0}) ==
        "LARS: invalid epsilon value: -1");
  CHECK(refusal<LARS>(LARSOptions{.momentum = 0.0, .nesterov = true}) ==
        "LARS: Nesterov momentum requires a momentum");
  for_each_kind([]<class Kind, class Options>(Options options) {
    CHECK(refusal<Kind>(options) == "no error");
    options.lr = -1.0;
    CHECK(contains(refusal<Kind>(options), ": invalid learning rate: -1"));
    CHECK(message_of<Error>([&] { Kind(std::vector<Tensor>{}, Options{}); }) ==
          "optimizer got an empty parameter list");
  });
}

TEST_CASE("hyper-parameters are found by torch's names") {
  ASGD asgd({single(1)});
  for (const char* name : {"lr", "lambd", "alpha", "t0", "weight_decay"}) {
    CHECK_NOTHROW(asgd.group(0)[name]);
  }
  Rprop rprop({single(1)});
  CHECK(rprop.group(0)["etas[0]"].value() == 0.5);
  CHECK(rprop.group(0)["step_sizes[1]"].value() == 50);
  CHECK(contains(message_of<Error>([&] { rprop.group(0)["momentum"]; }),
                 "it has lr, etas[0], etas[1], step_sizes[0], step_sizes[1]"));
}

TEST_CASE("the defaults are torch's") {
  CHECK(SGDOptions{}.lr.value() == 1e-3);
  CHECK(SGDOptions{}.momentum.value() == 0);
  CHECK(SGDOptions{}.dampening.value() == 0);
  CHECK(NAdamOptions{}.lr.value() == 2e-3);
  CHECK(NAdamOptions{}.momentum_decay.value() == 4e-3);
  CHECK(NAdamOptions{}.eps.value() == 1e-8);
  CHECK(RAdamOptions{}.lr.value() == 1e-3);
  CHECK(RAdamOptions{}.betas[1].value() == 0.999);
  CHECK(AdamaxOptions{}.lr.value() == 2e-3);
  CHECK(AdamaxOptions{}.betas[0].value() == 0.9);
  CHECK(AdagradOptions{}.lr.value() == 1e-2);
  CHECK(AdagradOptions{}.eps.value() == 1e-10);
  CHECK(AdadeltaOptions{}.lr.value() == 1.0);
  CHECK(AdadeltaOptions{}.rho.value() == 0.9);
  CHECK(AdadeltaOptions{}.eps.value() == 1e-6);
  CHECK(RMSpropOptions{}.lr.value() == 1e-2);
  CHECK(RMSpropOptions{}.alpha.value() == 0.99);
  CHECK(RMSpropOptions{}.eps.value() == 1e-8);
  CHECK(RpropOptions{}.lr.value() == 1e-2);
  CHECK(RpropOptions{}.etas[1].value() == 1.2);
  CHECK(RpropOptions{}.step_sizes[0].value() == 1e-6);
  CHECK(ASGDOptions{}.lr.value() == 1e-2);
  CHECK(ASGDOptions{}.lambd.value() == 1e-4);
  CHECK(ASGDOptions{}.alpha.value() == 0.75);
  CHECK(ASGDOptions{}.t0.value() == 1e6);
}

TEST_CASE("those that torch does not have have the usual defaults") {
  CHECK(LAMBOptions{}.lr.value() == 1e-3);
  CHECK(LAMBOptions{}.betas[0].value() == 0.9);
  CHECK(LAMBOptions{}.betas[1].value() == 0.999);
  CHECK(LAMBOptions{}.eps.value() == 1e-6);
  CHECK(LAMBOptions{}.weight_decay.value() == 1e-2);
  CHECK(LAMBOptions{}.bias_correction);
  CHECK(AdEMAMixOptions{}.lr.value() == 1e-3);
  CHECK(AdEMAMixOptions{}.betas[0].value() == 0.9);
  CHECK(AdEMAMixOptions{}.betas[1].value() == 0.999);
  CHECK(AdEMAMixOptions{}.betas[2].value() == 0.9999);
  CHECK(AdEMAMixOptions{}.alpha.value() == 5.0);
  CHECK(AdEMAMixOptions{}.t_alpha.value() == 0.0);
  CHECK(AdEMAMixOptions{}.t_beta3.value() == 0.0);
  CHECK(AdEMAMixOptions{}.eps.value() == 1e-8);
  CHECK(AdEMAMixOptions{}.weight_decay.value() == 1e-2);
  CHECK(LARSOptions{}.lr.value() == 1.0);
  CHECK(LARSOptions{}.momentum.value() == 0.9);
  CHECK(LARSOptions{}.weight_decay.value() == 0);
  CHECK(LARSOptions{}.trust_coefficient.value() == 1e-3);
  CHECK(LARSOptions{}.eps.value() == 1e-8);
  CHECK(!LARSOptions{}.nesterov);
}

// ---- the worked example of CONTRIBUTING.md ----------------------------------

TEST_CASE("an optimizer of one's own is one header") {
  Tensor param = single(1.0, DType::float64);
  set_grad(param, 0.5);
  Lion lion({param}, {.lr = tensor(0.125), .weight_decay = 0.5});
  auto step = compile([&] { lion.step(); }, {.fullgraph = true});
  double exact = 1;
  double mean = 0;
  for (int t = 1; t <= 6; ++t) {
    const double grad = t < 4 ? 0.5 : -8.0;
    set_grad(param, grad);
    step();
    exact *= 1 - 0.125 * 0.5;
    const double direction = 0.9 * mean + 0.1 * grad;
    exact -= 0.125 * (direction > 0 ? 1 : -1);
    mean = 0.99 * mean + 0.01 * grad;
    CHECK(close(first_of(param), exact, DType::float64));
    CHECK(close(first_of(lion.state(param, "exp_avg")), mean, DType::float64));
  }
  CHECK(step.counters().launches == 6);
  CHECK(step.counters().compilations == 1);
  CHECK(step.counters().recompiles == 0);
}
