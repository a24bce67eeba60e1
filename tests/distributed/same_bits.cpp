// The promise: any number of ranks gives the bits of one process.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <typeinfo>

#include "distributed/run_testing.h"
#include "fusebook/lr_scheduler/all.h"
#include "fusebook/optim/all.h"
#include "fusebook/optim_products/muon.h"
#include "fusebook/tensor/move_tensors.h"
#include "support/optimizer_rules.h"
#include "support/tested_device.h"

using namespace run_testing;

namespace {

// Some of one chunk, some of several with a rest, and some that are next to
// nothing.
const Model tensors = {{{{3}, DType::float32},
                        {{100, 257}, DType::float32},
                        {{}, DType::float32},
                        {{8192}, DType::float32},
                        {{8193, 2}, DType::float32},
                        {{0}, DType::float32},
                        {{20000}, DType::float64}}};

void check_same(const Run& run) {
  const auto [params, norms] = run.alone();
  const auto [shared, shared_norms] = run.shared();
  CHECK(norms == shared_norms);
  for (std::size_t p = 0; p < params.size(); ++p) {
    CAPTURE(p);
    CHECK(bitwise_equal(params[p], shared[p]));
  }
}

template <class Kind, class Options>
Make maker(const Options& options) {
  return [options](std::vector<Tensor> params) {
    return std::make_unique<Kind>(std::move(params), options);
  };
}

After attach_schedule(Optimizer& opt, bool cycle_momentum) {
  auto sched = std::make_shared<OneCycleLR>(
      opt, OneCycleLROptions{.max_lr = 0.02,
                             .total_steps = 250,
                             .cycle_momentum = cycle_momentum});
  return [sched](int) { sched->step(); };
}

// Of runs of every optimizer: 200 at night.
int many_steps(int usual) {
  const char* const told = std::getenv("FUSEBOOK_TEST_STEPS");
  return told == nullptr ? usual : std::stoi(told);
}

}  // namespace

TEST_CASE("every optimizer, with clipping and a schedule") {
  const auto check_kind = [&]<class Kind>(const auto& options) {
    CAPTURE(typeid(Kind).name());
    Run run{tensors, maker<Kind>(options)};
    run.options = {.divide_by = micro_gradients, .max_norm = 0.5};
    run.steps = many_steps(4);
    check_same(run);
    run.attach = [](Optimizer& opt) {
      return attach_schedule(opt, requires { options.betas; });
    };
    check_same(run);
  };
  optimizer_rules::for_each_kind(check_kind);
  check_kind.template operator()<Adam>(AdamOptions{.weight_decay = 0.1});
  check_kind.template operator()<AdamW>(AdamWOptions{.amsgrad = true});
}

TEST_CASE("matrices that an optimizer needs whole") {
  Run run{{{{{64, 48}, DType::float32}, {{200, 100}, DType::float32}}},
          maker<Muon>(MuonOptions{})};
  run.options = {.divide_by = micro_gradients, .max_norm = 1.0};
  run.steps = many_steps(4);
  check_same(run);
  run.make = maker<Adafactor>(AdafactorOptions{.weight_decay = 0.1});
  check_same(run);
}

TEST_CASE("two hundred steps") {
  Run run{{{{{5, 7}, DType::float32}, {{8192 * 3 + 5}, DType::float32}}},
          maker<AdamW>(AdamWOptions{.lr = tensor(0.01)})};
  run.options = {.divide_by = micro_gradients, .max_norm = 1.0};
  run.steps = 200;
  run.attach = [](Optimizer& opt) { return attach_schedule(opt, true); };
  check_same(run);
}

TEST_CASE("gradients in 16 bits are rounded after each addition") {
  Run run{{{{{8192 + 100}, DType::bfloat16}, {{40, 40}, DType::float16}}},
          [](std::vector<Tensor> params) {
            auto opt = std::make_unique<AdamW>(std::move(params));
            opt->use_master_weights();
            return opt;
          }};
  run.options = {.divide_by = micro_gradients, .max_norm = 0.1};
  check_same(run);
}

TEST_CASE("states in 8 bits") {
  Run run{{{{{8192 + 100}, DType::float32}, {{40, 40}, DType::float32}}},
          [](std::vector<Tensor> params) {
            auto opt = std::make_unique<AdamW>(std::move(params));
            opt->use_8bit_states();
            return opt;
          }};
  check_same(run);
  run.make = [](std::vector<Tensor> params) {
    auto opt = std::make_unique<AdamW>(std::move(params));
    opt->use_8bit_states(true, 4096, 2048);
    return opt;
  };
  check_same(run);
}

TEST_CASE("parameters that are rounded stochastically") {
  for (const bool coded : {false, true}) {
    Run run{{{{{3}, DType::bfloat16},
              {{100, 257}, DType::bfloat16},
              {{20}, DType::float32},
              {{8192 * 5 + 3}, DType::bfloat16},
              {{8193, 2}, DType::bfloat16}}},
            [=](std::vector<Tensor> params) {
              auto opt = std::make_unique<AdamW>(std::move(params));
              opt->use_stochastic_rounding(true, 5);
              opt->use_8bit_states(coded);
              return opt;
            }};
    run.steps = 5;
    run.options = {.divide_by = micro_gradients, .skip_nonfinite = true};
    run.model.is_broken = [](int step, int micro) {
      return step == 2 && micro == 3;
    };
    check_same(run);
  }
}

TEST_CASE("parameters in 16 bits that are updated in float32") {
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    Run run{{{{{3}, dtype},
              {{100, 257}, dtype},
              {{20}, DType::float32},
              {{8193, 2}, dtype}}},
            [](std::vector<Tensor> params) {
              auto opt = std::make_unique<AdamW>(std::move(params));
              opt->use_opmath();
              return opt;
            }};
    check_same(run);
  }
}

TEST_CASE("a gradient that only some ranks have, or nobody") {
  Run run{tensors, maker<Adam>(AdamOptions{})};
  run.model.has_gradient = [](int step, int micro, std::size_t param) {
    if (param == 1 && step % 3 == 0) return false;
    if (param == 4) return micro == step % micro_gradients;
    return micro % 2 == int(param) % 2;
  };
  run.options = {.divide_by = 2.0, .max_norm = 0.5};
  check_same(run);
}

TEST_CASE("a step that is skipped") {
  Run run{tensors, maker<Adam>(AdamOptions{})};
  run.model.is_broken = [](int step, int micro) {
    return step % 3 == 1 && micro == 5;
  };
  run.options = {.max_norm = 3.0, .skip_nonfinite = true};
  run.attach = [](Optimizer& opt) {
    return [&opt](int step) { opt.group(0)["lr"].assign(0.01 / (step + 1)); };
  };
  run.steps = 6;
  check_same(run);
}

TEST_CASE("a parameter that is not in row-major order") {
  const auto make = [](std::vector<Tensor> params) {
    params.push_back(params.back().t());
    params.erase(params.end() - 2);
    return std::make_unique<Adam>(std::move(params));
  };
  const Model model = {{{{200}, DType::float32}, {{300, 100}, DType::float32}}};
  // The gradients are those of the transposed parameter's own.
  auto alone = model.params();
  const auto one = make(alone);
  auto shared = model.params();
  const auto many = make(shared);
  ShardedOptimizer sharded(*given_ranks, *many,
                           {.backend = Backend::interpreted});
  for (int step = 0; step < 5; ++step) {
    one->zero_grad();
    auto params = one->parameters();
    for (int m = 0; m < micro_gradients; ++m) {
      model.add_gradients(params, step, m);
    }
    const double norm = clip_grad_norm_(params, 0.5).value();
    one->step();
    auto whole = sharded.parameters();
    add_own_gradients(sharded, model, whole, step);
    CHECK(sharded.step({.max_norm = 0.5}).norm == norm);
  }
  CHECK(bitwise_equal(alone, shared));
}

TEST_CASE("groups, and more ranks than parameters") {
  const auto make = [](std::vector<Tensor> params) {
    std::vector<AdamW::Group> groups;
    groups.emplace_back(std::vector{params[0]}, AdamWOptions{.lr = 0.1});
    groups.emplace_back(std::vector{params[1]},
                        AdamWOptions{.weight_decay = 0.0});
    return std::make_unique<AdamW>(std::move(groups));
  };
  Run run{{{{{3}, DType::float32}, {{2}, DType::float32}}}, make};
  check_same(run);
}

TEST_CASE("all begin with the parameters of the first") {
  Tensor param = filled({8192 + 5}, DType::float32, 1, 1);
  Tensor wanted = param.clone();
  if (given_ranks->rank() > 0) param.fill_(double(given_ranks->rank()));
  SGD opt({param});
  const ShardedOptimizer sharded(*given_ranks, opt);
  CHECK(bitwise_equal(param, wanted));
}

TEST_CASE("parameters on a GPU") {
  const testing::DefaultDevice device(testing::tested_device());
  Run run{{{{{8192 * 2 + 9}, DType::float32}, {{4, 6}, DType::float32}}},
          maker<AdamW>(AdamWOptions{})};
  run.options = {.divide_by = micro_gradients, .max_norm = 0.5};
  run.steps = 3;
  check_same(run);
}

TEST_CASE("messages in pieces") {
  given_ranks->set_largest_message(1000);
  Run run{tensors, maker<Adam>(AdamOptions{})};
  run.steps = 3;
  check_same(run);
  given_ranks->set_largest_message(std::int64_t(1) << 30);
}

TEST_CASE("the compiled step") {
  Run run{tensors, maker<AdamW>(AdamWOptions{})};
  auto params = run.model.params();
  const auto opt = run.make(params);
  ShardedOptimizer sharded(*given_ranks, *opt);
  run.options = {.max_norm = 0.5};
  run.steps = 3;
  for (int step = 0; step < run.steps; ++step) {
    add_own_gradients(sharded, run.model, params, step);
    sharded.step(run.options);
  }
  CHECK(bitwise_equal(run.alone().first, params));
}

TEST_CASE("each rank holds the states of its share") {
  const Model model = {{{{8192 * 70}, DType::float32}}};
  SharedTraining<AdamW> training(model);
  training.step(0);
  std::int64_t own = 0;
  for (const Tensor& each : training.sharded.own()) own += each.numel();
  const int ranks = given_ranks->size();
  CHECK(own >= 8192 * (70 / ranks));
  CHECK(own <= 8192 * (70 / ranks + 1));
  CHECK(std::int64_t(training.opt.memory().states) == own * 8 + 8);
}

TEST_CASE("each micro-gradient travels once, and each parameter to everybody") {
  const Model model = {
      {{{8192 * 9 + 7}, DType::float32}, {{3}, DType::bfloat16}}};
  auto params = model.params();
  SGD opt(params);
  const RankTraffic start = given_ranks->traffic();
  ShardedOptimizer sharded(*given_ranks, opt,
                           {.backend = Backend::interpreted});
  std::int64_t own = 0;
  std::int64_t all = 0;
  for (const Tensor& each : sharded.own()) own += std::int64_t(each.nbytes());
  for (const Tensor& each : params) all += std::int64_t(each.nbytes());
  const RankTraffic before = given_ranks->traffic();
  CHECK(before.parameters == start.parameters);  // not of a step
  add_own_gradients(sharded, model, params, 0);
  sharded.step();
  const RankTraffic after = given_ranks->traffic();
  std::int64_t micros = 0;
  for (int m = given_ranks->rank(); m < micro_gradients;
       m += given_ranks->size()) {
    ++micros;
  }
  CHECK(after.gradients - before.gradients == micros * (all - own));
  CHECK(after.parameters - before.parameters ==
        own * (given_ranks->size() - 1));
  CHECK(after.sums == before.sums);
}

TEST_CASE("groups of ranks train side by side") {
  const Model model = {{{{8192 * 5 + 1}, DType::float32}}};
  for (const int size : {1, 2, 3}) {
    CAPTURE(size);
    Ranks group(*given_ranks, size);
    const int first = given_ranks->rank() / size * size;
    CHECK(group.rank() == given_ranks->rank() - first);
    CHECK(group.size() == std::min(size, given_ranks->size() - first));
    int members = 0;
    MPI_Comm_size(group.communicator(), &members);
    CHECK(members == group.size());
    auto params = model.params();
    AdamW opt(params);
    ShardedOptimizer sharded(group, opt, {.backend = Backend::interpreted});
    for (int m = group.rank(); m < micro_gradients; m += group.size()) {
      model.add_gradients(params, 0, m);
      sharded.add_gradients();
    }
    sharded.step();
    auto alone = model.params();
    AdamW one(alone);
    for (int m = 0; m < micro_gradients; ++m) {
      model.add_gradients(alone, 0, m);
    }
    one.step();
    CHECK(bitwise_equal(alone, params));
  }
  CHECK_THROWS_AS(Ranks(*given_ranks, 0), Error);
  if (given_ranks->size() == 1) return;
  const int own = given_ranks->rank() == 0 ? 1 : 2;
  CHECK_THROWS_AS(Ranks(*given_ranks, own), RanksDisagree);
}

TEST_CASE("an exception may leave a group of one: nobody waits for it") {
  const auto throws = [] {
    const Ranks alone(*given_ranks, 1);
    throw Error("left");
  };
  CHECK_THROWS_WITH(throws(), "left");
  const Ranks next(*given_ranks, 1);
  CHECK(next.size() == 1);
}

// As one process does it.
static void step_alone(const Model& model, AdamW& opt,
                       std::vector<Tensor>& params, int step) {
  opt.zero_grad();
  for (int m = 0; m < micro_gradients; ++m) {
    model.add_gradients(params, step, m);
  }
  opt.step();
}

TEST_CASE("an optimizer that has stepped before it is shared") {
  const Model model = {
      {{{8192 * 5 + 1}, DType::float32}, {{6}, DType::float32}}};
  auto alone = model.params();
  AdamW one(alone);
  auto shared = model.params();
  AdamW many(shared);
  step_alone(model, one, alone, 0);
  step_alone(model, many, shared, 0);
  many.zero_grad();
  ShardedOptimizer sharded(*given_ranks, many,
                           {.backend = Backend::interpreted});
  for (int step = 1; step < 4; ++step) {
    step_alone(model, one, alone, step);
    add_own_gradients(sharded, model, shared, step);
    sharded.step();
  }
  CHECK(bitwise_equal(alone, shared));
}

TEST_CASE("parameters that move are followed") {
  const Model model = {
      {{{8192 * 5 + 1}, DType::float32}, {{6}, DType::float32}}};
  auto alone = model.params();
  AdamW one(alone);
  auto shared = model.params();
  AdamW many(shared);
  ShardedOptimizer sharded(*given_ranks, many,
                           {.backend = Backend::interpreted});
  for (int step = 0; step < 4; ++step) {
    if (step == 1) flatten_(shared);
    if (step == 2) shared[1].set_data(shared[1].clone());
    step_alone(model, one, alone, step);
    add_own_gradients(sharded, model, shared, step);
    sharded.step();
    CHECK(bitwise_equal(alone, shared));
  }
}
