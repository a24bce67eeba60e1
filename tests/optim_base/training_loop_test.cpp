// A training loop as a user of PyTorch writes it: gradients that are new tensors
// in every step, clipping by value, a head that joins at half time, a schedule
// with tensor rates, a checkpoint, and a run that goes on from it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "fusebook/checkpoint/checkpoint.h"
#include "fusebook/compile/compile.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/jit/scratch_directory.h"
#include "fusebook/lr_scheduler/all.h"
#include "fusebook/nn/loss.h"
#include "fusebook/nn/model.h"
#include "fusebook/optim/all.h"
#include "fusebook/tensor/random.h"

using namespace fuse;

namespace {

constexpr double most = 0.05;  // of a gradient's element

// Adam by its published formula, for one parameter and in double.
class PlainAdam {
 public:
  explicit PlainAdam(const Tensor& param)
      : values_(param.to_vector()),
        mean_(values_.size()),
        square_(values_.size()) {}

  void step(const std::vector<double>& gradient, double lr) {
    ++steps_;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const double g = std::clamp(gradient[i], -most, most);
      mean_[i] = 0.9 * mean_[i] + 0.1 * g;
      square_[i] = 0.999 * square_[i] + 0.001 * g * g;
      const double mean = mean_[i] / (1 - std::pow(0.9, steps_));
      const double square = square_[i] / (1 - std::pow(0.999, steps_));
      values_[i] -= lr * mean / (std::sqrt(square) + 1e-8);
    }
  }
  const std::vector<double>& values() const { return values_; }

 private:
  std::vector<double> values_, mean_, square_;
  int steps_ = 0;
};

// A body that learns from the beginning, and a head that joins later.
struct Run {
  explicit Run(bool with_head = false)
      : body({Linear(8, 16, generator), Linear(16, 8, generator)}),
        head(8, 4, generator),
        opt(body.parameters(), {.lr = tensor(0.01)}) {
    if (with_head) add_head();
    schedule();
  }

  void add_head() {
    opt.add_param_group(head.parameters(), {{"lr", tensor(0.02)}});
  }
  // As PyTorch wants it: a scheduler knows the groups there are when it is made.
  void schedule() {
    sched = std::make_unique<ExponentialLR>(
        opt, ExponentialLROptions{.gamma = 0.95});
  }

  // The part of the loop that the user compiles.
  void update() {
    for (const auto& group : opt.param_groups) {
      std::vector<Tensor> gradients;
      for (const Tensor& param : group.params) {
        gradients.push_back(param.grad());
      }
      foreach_clamp_(TensorList(std::move(gradients)), -most, most);
    }
    opt.step();
    sched->step();
  }

  Tensor loss(int step) const {
    Generator data{std::uint64_t(step)};
    const Tensor input = rand({32, 8}, data);
    return mse_loss(head(body(input)), rand({32, 4}, data));
  }
  void backward(int step) const {
    opt.zero_grad();
    loss(step).backward();
  }
  std::vector<Tensor> all() const {
    std::vector<Tensor> tensors = body.parameters();
    for (const Tensor& each : head.parameters()) tensors.push_back(each);
    return tensors;
  }

  Generator generator{7};
  Sequential body;
  Linear head;
  Adam opt;
  std::unique_ptr<ExponentialLR> sched;
};

// The rates that a schedule of its own formula gives, rounded as a float32
// tensor rounds them.
class PlainRates {
 public:
  void begin(std::vector<double> rates) {
    rates_.assign(rates.begin(), rates.end());
  }
  double operator[](std::size_t group) const { return double(rates_[group]); }
  void step() {
    for (float& rate : rates_) rate = float(double(rate) * 0.95);
  }

 private:
  std::vector<float> rates_;
};

}  // namespace

TEST_CASE("everybody's loop: one launch a step, one compilation a reason") {
  Run run;
  auto update = compile([&run] { run.update(); }, {.fullgraph = true});

  std::vector<Tensor> params = run.all();
  std::vector<PlainAdam> plain(params.begin(), params.end());
  PlainRates rates;
  rates.begin({0.01});
  const std::size_t body_size = run.body.parameters().size();
  const auto train = [&](int from, int to) {
    for (int step = from; step < to; ++step) {
      run.backward(step);
      const std::size_t taking_part = run.opt.parameters().size();
      for (std::size_t i = 0; i < taking_part; ++i) {
        plain[i].step(params[i].grad().to_vector(),
                      rates[i < body_size ? 0 : 1]);
      }
      update();
      rates.step();
    }
  };

  train(0, 40);
  CHECK(update.counters().launches == 40);
  CHECK(update.counters().compilations == 1);
  const double at_half_time = run.loss(1000).item();

  run.add_head();
  // The rates moved: what the schedule starts from now is what they are.
  for (std::size_t g = 0; g < 2; ++g) run.opt.group(g).initial_lr.reset();
  run.schedule();
  rates.begin({run.opt.group(0)["lr"].value(), 0.02});
  train(40, 100);
  CHECK(update.counters().launches == 100);
  // The one reason: where there was one rate, each group now has its own.
  CHECK(update.counters().compilations == 2);
  CHECK(update.counters().graph_breaks == 0);

  for (std::size_t i = 0; i < params.size(); ++i) {
    const std::vector<double> values = params[i].to_vector();
    for (std::size_t k = 0; k < values.size(); ++k) {
      CAPTURE(i);
      CAPTURE(k);
      REQUIRE(values[k] ==
              doctest::Approx(plain[i].values()[k]).epsilon(0.001).scale(0.1));
    }
  }
  CHECK(run.opt.state(params[0], "step").item() == 100);
  CHECK(run.opt.state(params[body_size], "step").item() == 60);
  CHECK(run.loss(1000).item() < at_half_time);
}

TEST_CASE("the loop goes on from a checkpoint, with the same bits") {
  const ScratchDirectory folder = make_temporary_directory();
  const std::string file = folder.path() + "/run.safetensors";

  Run first(true);
  auto update = compile([&first] { first.update(); });
  const auto train = [](Run& run, auto& compiled, int from, int to) {
    for (int step = from; step < to; ++step) {
      run.backward(step);
      compiled();
    }
  };
  train(first, update, 0, 30);
  save_checkpoint(file, first.opt, {first.sched.get()});
  train(first, update, 30, 60);

  Run second(true);
  auto resumed = compile([&second] { second.update(); });
  load_checkpoint(file, second.opt, {second.sched.get()});
  train(second, resumed, 30, 60);

  CHECK(bitwise_equal(first.all(), second.all()));
  CHECK(resumed.counters().launches == 30);
  CHECK(resumed.counters().compilations == 1);
  CHECK(resumed.counters().recompiles == 0);
}

TEST_CASE("a schedule made before a group was added says what to do") {
  Run run;
  run.add_head();
  run.backward(0);
  std::string message;
  try {
    run.update();
  } catch (const Error& error) {
    message = error.what();
  }
  CAPTURE(message);
  CHECK(message.find("ExponentialLR") != std::string::npos);
  CHECK(message.find("param_groups[1]") != std::string::npos);
}
