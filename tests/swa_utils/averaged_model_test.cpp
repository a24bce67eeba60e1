#include "fusebook/swa_utils/averaged_model.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/foreach/reductions.h"
#include "fusebook/nn/model.h"
#include "fusebook/optim/all.h"
#include "fusebook/support/error.h"
#include "support/step_testing.h"
#include "support/tested_device.h"

using namespace fuse;
using namespace step_testing;
using testing::contains;
using testing::message_of;
using testing::tested_device;

namespace {

const std::vector<Shape> shapes = {{300}, {}, {0}, {3, 4}, {9000}};

void move(const std::vector<Tensor>& params, int step) {
  testing::Random random(std::uint64_t(step) + 7);
  for (const Tensor& param : params) {
    assign(param, random_tensor(param.shape(), random).to_vector());
  }
}

std::vector<Tensor> zeros_for(const std::vector<Tensor>& params) {
  std::vector<Tensor> averaged;
  for (const Tensor& each : params) averaged.push_back(zeros_like(each));
  return averaged;
}

// torch's lerp in float32, once a step; `weight` of the step, counted from 0.
using Weight = std::function<double(int)>;

std::vector<std::vector<float>> by_hand(int steps, const Weight& weight,
                                        const std::vector<bool>& skipped) {
  auto params = make_params(shapes, 1);
  std::vector<std::vector<float>> averages(params.size());
  int made = 0;
  for (int n = 0; n < steps; ++n) {
    move(params, n);
    if (skipped[std::size_t(n)]) continue;
    const auto w = float(weight(made));
    for (std::size_t p = 0; p < params.size(); ++p) {
      const auto values = params[p].to_vector();
      averages[p].resize(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto now = float(values[i]);
        float& average = averages[p][i];
        if (made == 0) {
          average = now;
        } else {
          average = std::fabs(w) < 0.5F ? average + w * (now - average)
                                        : now - (now - average) * (1 - w);
        }
      }
    }
    ++made;
  }
  return averages;
}

bool equal(const std::vector<Tensor>& averaged,
           const std::vector<std::vector<float>>& wanted) {
  bool all = true;
  for (std::size_t p = 0; p < averaged.size(); ++p) {
    const auto values = averaged[p].to_vector();
    for (std::size_t i = 0; i < values.size(); ++i) {
      all = all && values[i] == double(wanted[p][i]);
    }
  }
  return all;
}

void check(const MultiAvgFn& fn, const Weight& weight,
           const std::optional<Backend>& backend, bool skips) {
  const auto params = make_params(shapes, 1);
  const auto averaged = zeros_for(params);
  ParameterAverages averages(averaged, fn);
  Tensor skip = tensor(0.0);
  const auto update = [&] { averages.update(params, {.skip = skip}); };
  auto step = compile(update, {.fullgraph = true,
                               .backend = backend.value_or(Backend::compiled)});
  testing::Random random(3);
  std::vector<bool> skipped;
  for (int n = 0; n < 12; ++n) {
    skipped.push_back(skips && (n == 0 || random.chance(0.3)));
    move(params, n);
    skip.fill_(skipped.back() ? 1 : 0);
    backend ? step() : update();
  }
  CHECK(equal(averaged, by_hand(12, weight, skipped)));
  const auto made = std::count(skipped.begin(), skipped.end(), false);
  CHECK(averages.n_averaged() == made);
  if (backend) CHECK(step.counters().launches == 12);
}

void check_everywhere(const MultiAvgFn& fn, const Weight& weight) {
  for (const bool skips : {false, true}) {
    for (const Backend backend :
         {Backend::compiled, Backend::interpreted, Backend::simulated}) {
      check(fn, weight, backend, skips);
    }
    check(fn, weight, std::nullopt, skips);
  }
}

}  // namespace

TEST_CASE("a mean follows torch's formula to the bit") {
  check_everywhere(get_swa_multi_avg_fn(),
                   [](int made) { return 1.0 / (made + 1); });
}

TEST_CASE("an exponential average follows torch's formula to the bit") {
  for (const double decay : {0.999, 0.3, 0.0, 1.0}) {
    check_everywhere(get_ema_multi_avg_fn(decay),
                     [=](int) { return 1 - decay; });
  }
}

TEST_CASE("what is not finite is copied at first") {
  const std::vector<Tensor> params = {
      tensor({std::numeric_limits<double>::infinity(), -0.0})};
  const std::vector<Tensor> averaged = {tensor({NAN, 5.0})};
  ParameterAverages averages(averaged, get_ema_multi_avg_fn());
  averages.update(params);
  CHECK(same_bits(averaged, params));
}

TEST_CASE("the step and the average are one launch of 36 bytes an element") {
  const auto params = make_params({{300}, {9000}}, 1);
  const auto averaged = zeros_for(params);
  Adam adam(params, {.lr = 0.01});
  ParameterAverages averages(averaged, get_ema_multi_avg_fn());
  auto step = compile(
      [&] {
        adam.step();
        averages.update(params);
      },
      {.fullgraph = true});
  for (int n = 0; n < 5; ++n) step();
  CHECK(step.counters().launches == 5);
  CHECK(step.counters().graph_breaks == 0);
  // Step counts and those of averages are read and stored.
  CHECK(step.counters().bytes_moved == 5 * (9300 * 36 + 2 * 32));
}

TEST_CASE("groups in another order are averaged in the same launch") {
  const auto params = make_params({{300}, {3}, {9000}, {5}}, 1);
  const auto expected = copies(params);
  const auto averaged = zeros_for(params);
  const auto wanted = zeros_for(params);
  AdamW adam({AdamW::Group({params[0], params[2]}, {.lr = 0.01}),
              AdamW::Group({params[1], params[3]},
                           {.lr = 0.02, .weight_decay = 0.0})});
  AdamW eager(expected, {.lr = 0.01});
  ParameterAverages averages(averaged, get_ema_multi_avg_fn(0.9));
  ParameterAverages by_copies(wanted, get_ema_multi_avg_fn(0.9));
  auto step = compile(
      [&] {
        adam.step();
        averages.update(params);
      },
      {.fullgraph = true});
  for (int n = 0; n < 4; ++n) {
    step();
    by_copies.update(params);
  }
  CHECK(same_bits(averaged, wanted));
  CHECK(step.counters().launches == 4);
  CHECK(step.counters().graph_breaks == 0);
}

TEST_CASE("averages follow parameters that get other lists") {
  const auto params = make_params({{30}, {3}}, 1);
  const auto averaged = zeros_for(params);
  ParameterAverages averages(averaged, get_swa_multi_avg_fn());
  averages.update(params);
  {
    SGD sgd({SGD::Group({params[1]}, {.momentum = 0.5}),
             SGD::Group({params[0]}, {.nesterov = false})});
    sgd.step();
    averages.update(params);
  }
  averages.update(params);
  CHECK(averages.n_averaged() == 3);
  const auto others = copies(params);
  averages.update(others);
  CHECK(averages.n_averaged() == 4);
}

namespace {

/// Averages of parameters, and what they should be.
struct Averaged {
  std::vector<Tensor> params = make_params({{300}, {3}, {7}}, 1);
  std::vector<Tensor> averaged = zeros_for(params);
  ParameterAverages averages{averaged, get_ema_multi_avg_fn(0.75)};
  std::vector<std::vector<float>> wanted;

  void update_wanted() {
    const bool first = wanted.empty();
    wanted.resize(params.size());
    for (std::size_t p = 0; p < params.size(); ++p) {
      const auto values = params[p].to_vector();
      wanted[p].resize(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        float& average = wanted[p][i];
        const auto now = float(values[i]);
        average = first ? now : average + 0.25F * (now - average);
      }
    }
  }

  std::vector<Tensor> in_order(const std::vector<std::size_t>& order) const {
    std::vector<Tensor> ordered;
    for (const std::size_t i : order) ordered.push_back(params[i]);
    return ordered;
  }

  /// Steps of this optimizer, each in one launch with the averages.
  void train(Optimizer& optimizer) {
    auto step = compile(
        [&] {
          optimizer.step();
          averages.update(params);
        },
        {.fullgraph = true});
    for (int n = 0; n < 3; ++n) {
      step();
      update_wanted();
    }
    CHECK(step.counters().launches == 3);
    CHECK(equal(averaged, wanted));
  }
};

}  // namespace

TEST_CASE("averages are in one launch with the next optimizer, too") {
  Averaged some;
  some.averages.update(some.params);
  some.update_wanted();
  for (const std::vector<std::size_t>& order :
       {std::vector<std::size_t>{1, 0, 2}, {1, 2, 0}, {0, 2, 1}}) {
    Adam adam(some.in_order(order), {.lr = 0.01});
    some.train(adam);
  }
}

TEST_CASE("and with one from before, when the last one is gone") {
  Averaged some;
  Adam adam(some.in_order({1, 0, 2}), {.lr = 0.01});
  adam.step();
  {
    SGD sgd(some.params, {.lr = 0.1});
    some.train(sgd);
  }
  some.train(adam);
}

TEST_CASE("an averaged model is a model") {
  Generator generator(1);
  const Sequential model({Linear(3, 4, generator), Linear(4, 2, generator)});
  AveragedModel averaged(model, get_ema_multi_avg_fn(0.5));
  const Tensor input = full({1, 3}, 0.5);
  CHECK(same_bits(averaged(input), model(input)));
  CHECK(averaged.n_averaged() == 0);
  averaged.update_parameters(model);
  const auto before = averaged.module.parameters()[0].to_vector();
  for (Tensor& param : model.parameters()) param.fill_(1);
  averaged.update_parameters(model);
  CHECK(averaged.n_averaged() == 2);
  const auto after = averaged.module.parameters()[0].to_vector();
  for (std::size_t i = 0; i < before.size(); ++i) {
    CHECK(after[i] == doctest::Approx((before[i] + 1) / 2));
  }
  averaged.set_n_averaged(0);
  averaged.update_parameters(model);
  CHECK(same_bits(averaged.module.parameters(), model.parameters()));
}

TEST_CASE("averages are where the parameters are") {
  const std::vector<Tensor> params = {full({3}, 1).to(tested_device())};
  const std::vector<Tensor> averaged = {full({3}, 9).to(tested_device())};
  ParameterAverages averages(averaged, get_swa_multi_avg_fn());
  auto step = compile([&] { averages.update(params); }, {.fullgraph = true});
  step();
  Tensor(params[0]).fill_(3);
  step();
  CHECK(averaged[0].cpu().to_vector() == std::vector<double>{2, 2, 2});
  CHECK(averages.n_averaged() == 2);
}

TEST_CASE("what cannot be averaged is an error") {
  CHECK(contains(message_of<Error>([] { get_ema_multi_avg_fn(1.5); }),
                 "decay must be between 0 and 1, not 1.5"));
  ParameterAverages averages({zeros({3})}, get_swa_multi_avg_fn());
  CHECK(contains(message_of<Error>([&] { averages.update({}); }),
                 "expected 1 parameters, but got 0"));
  CHECK(contains(message_of<Error>([&] { averages.update({zeros({4})}); }),
                 "parameter 0 has shape [4], float32, on cpu, but its average "
                 "has shape [3]"));
  CHECK(contains(message_of<Error>([&] { averages.update({Tensor()}); }),
                 "parameter 0 is undefined"));
  CHECK(contains(
      message_of<Error>([] { ParameterAverages none({zeros({3})}, nullptr); }),
      "the averaging function is empty"));
}
