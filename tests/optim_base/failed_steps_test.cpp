// A step that throws changes nothing: no parameter, no state, no count and no
// scheduler, whichever optimizer it is, and however it runs.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/foreach/clip_grad.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/optim/sgd.h"
#include "fusebook/support/error.h"
#include "support/checkpoint_testing.h"
#include "support/step_testing.h"
#include "support/tested_device.h"

using namespace fuse;
using namespace checkpoint_testing;
using namespace step_testing;
using testing::contains;
using testing::message_of;

namespace {

// What makes the next step impossible. Every optimizer has two groups, of
// float32 and of float64; what fails is in the second.
struct Failure {
  const char* label;
  const char* message;
  void (*spoil)(Optimizer&);
};

void set_any_gradient(Optimizer& opt, const Tensor& gradient) {
  opt.group(1).params[0].impl()->grad = gradient.impl();
}

void add_with_gradient(Optimizer& opt, Tensor param) {
  param.set_grad(full(param.shape(), 1, param.dtype()));
  opt.group(1).params.push_back(param);
}

const Failure kFailures[] = {
    {"a gradient of another shape", "[3, 3]",
     [](Optimizer& opt) {
       set_any_gradient(opt, zeros({3, 3}, DType::float64));
     }},
    {"a parameter that is not there", "is an undefined tensor",
     [](Optimizer& opt) { opt.group(1).params.emplace_back(); }},
    {"a parameter in two groups", "put each parameter in one group only",
     [](Optimizer& opt) {
       opt.group(1).params.push_back(opt.group(0).params[0]);
     }},
    {"new parameters that overlap", "is stored but overlaps",
     [](Optimizer& opt) {
       const Tensor both = zeros({12}, DType::float64);
       add_with_gradient(opt, both.narrow(0, 0, 8));
       add_with_gradient(opt, both.narrow(0, 4, 8));
     }},
    {"a new parameter that repeats one number", "share memory",
     [](Optimizer& opt) {
       add_with_gradient(opt, zeros({1}, DType::float64).expand({4}));
     }},
};

// The parameters of an optimizer with their gradients, to be put back.
class Repair {
 public:
  explicit Repair(Optimizer& opt) : opt_(opt) {
    for (std::size_t g = 0; g < opt.group_count(); ++g) {
      params_.push_back(opt.group(g).params);
      for (const Tensor& param : params_.back()) {
        grads_.emplace_back(param, param.grad());
      }
    }
  }
  void operator()() const {
    for (std::size_t g = 0; g < params_.size(); ++g) {
      opt_.group(g).params = params_[g];
    }
    for (auto [param, grad] : grads_) param.set_grad(grad);
  }

 private:
  Optimizer& opt_;
  std::vector<std::vector<Tensor>> params_;
  std::vector<std::pair<Tensor, Tensor>> grads_;
};

enum class Mode { eager, compiled, interpreted };

// A run whose call is one step of the optimizer and one of its scheduler.
class Trained {
 public:
  Trained(const Kind& kind, const ScheduleRow& row, Mode mode)
      : run_(kind, row, true), call_([this] { body(); }) {
    if (mode == Mode::eager) return;
    const Backend backend =
        mode == Mode::compiled ? Backend::compiled : Backend::interpreted;
    call_ = compile([this] { body(); }, {.backend = backend});
  }
  Trained(const Trained&) = delete;
  Trained& operator=(const Trained&) = delete;

  void call() {
    ++n_;
    call_();
  }
  Optimizer& opt() { return *run_.opt; }
  std::string bits() { return bits_of(opt(), run_.sched.scheduler().state()); }
  /// That many calls, of which none counts that throws.
  std::string failing_call() {
    const std::string message = message_of<Error>([&] { call(); });
    --n_;
    return message;
  }
  std::function<void()> also;  ///< at the end of the body

 private:
  void body() {
    opt().step();
    run_.sched.step(n_);
    if (also) also();
  }

  Run run_;
  std::function<void()> call_;
  std::int64_t n_ = 0;
};

}  // namespace

TEST_CASE("a step that throws changes nothing, and the next one goes on") {
  const ScheduleRow row = lr_testing::rows()[0];
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    for (const Mode mode : {Mode::eager, Mode::compiled, Mode::interpreted}) {
      CAPTURE(int(mode));
      Trained undisturbed(kind, row, Mode::eager);
      Trained run(kind, row, mode);
      const Repair repair(run.opt());
      undisturbed.call();
      run.call();
      REQUIRE(run.bits() == undisturbed.bits());
      for (const Failure& failure : kFailures) {
        CAPTURE(std::string(failure.label));
        failure.spoil(run.opt());
        const std::vector<Tensor> spoilt = run.opt().group(1).params;
        for (int tries = 0; tries < 2; ++tries)
          CHECK(contains(run.failing_call(), failure.message));
        repair();
        CHECK(run.bits() == undisturbed.bits());
        for (std::size_t i = 5; i < spoilt.size(); ++i) {
          if (!spoilt[i].defined()) continue;
          const bool fresh =
              spoilt[i].impl() != run.opt().group(0).params[0].impl();
          if (fresh) CHECK(run.opt().states(spoilt[i]).empty());
        }
      }
      undisturbed.call();
      run.call();
      CHECK(run.bits() == undisturbed.bits());
    }
  }
}

TEST_CASE("the first step of all may fail, too") {
  const ScheduleRow row = lr_testing::rows()[0];
  const Kind& kind = kinds()[0];
  for (const Mode mode : {Mode::eager, Mode::compiled, Mode::interpreted}) {
    for (const Failure& failure : kFailures) {
      CAPTURE(std::string(failure.label));
      Trained run(kind, row, mode);
      const Repair repair(run.opt());
      const std::string before = run.bits();
      failure.spoil(run.opt());
      CHECK(contains(run.failing_call(), failure.message));
      repair();
      CHECK(run.bits() == before);
      for (const Tensor& param : run.opt().parameters()) {
        CHECK(run.opt().states(param).empty());
      }
      CHECK(run.opt().steps() == 0);
    }
  }
}

TEST_CASE("what fails at the end of a compiled call takes everything back") {
  for (const ScheduleRow& row : lr_testing::rows()) {
    CAPTURE(row.name);
    Trained undisturbed(kinds()[0], row, Mode::eager);
    Trained run(kinds()[0], row, Mode::interpreted);
    const auto both = [&] {
      undisturbed.call();
      run.call();
    };
    both();
    const TensorList params(run.opt().group(0).params);
    run.also = [&] {
      run.opt().step();  // once more
      throw Error("enough");
    };
    CHECK(run.failing_call() == "enough");
    CHECK(run.bits() == undisturbed.bits());
    run.also = nullptr;
    both();
    CHECK(run.bits() == undisturbed.bits());
  }
}

TEST_CASE("a policy that forbids to compile again changes nothing") {
  const auto params = make_params(mixed_shapes(4), 1);
  Adam adam(params);
  bool more = false;
  auto step = compile(
      [&] {
        adam.step();
        if (more) foreach_mul_(TensorList(params), 0.5);
      },
      {.policy = Policy::fail_on_recompile});
  step();
  const auto before = copies(params);
  more = true;
  CHECK_THROWS_AS(step(), RecompileError);
  CHECK(adam.steps() == 1);
  CHECK(same_bits(params, before));
  more = false;
  step();
  CHECK(adam.steps() == 2);
  CHECK(adam.state(params[0], "step").item() == 2);
}

TEST_CASE("what was executed before a failure stays") {
  const auto params = make_params({{4}}, 1);
  Adam adam(params);
  auto step = compile([&] {
    adam.step();
    static_cast<void>(params[0].to_vector());  // a graph break
    adam.step();
    throw Error("enough");
  });
  CHECK_THROWS_AS(step(), Error);
  CHECK(adam.steps() == 1);
  CHECK(adam.state(params[0], "step").item() == 1);
}

TEST_CASE("an optimizer or a scheduler may be gone when its call fails") {
  const auto params = make_params({{4}}, 1);
  auto step = compile([&] {
    Adam adam(params);
    StepLR sched(adam, {.step_size = 1});
    adam.step();
    sched.step();
    throw Error("enough");
  });
  const auto before = copies(params);
  CHECK(message_of<Error>([&] { step(); }) == "enough");
  CHECK(same_bits(params, before));
}

// ---- optimizers of one's own -------------------------------------------------

namespace {

struct OwnOptions {
  Scalar lr = 1;
  bool foreach = true;
  template <class F>
  void for_each_scalar(F f) {
    f("lr", lr);
  }
  template <class F>
  void for_each_flag(F) {}
  void validate() const {}
};

// Makes mistakes, or looks at its own numbers on the way.
class Own : public ListOptimizer<OwnOptions> {
 public:
  using ListOptimizer::ListOptimizer;
  enum class Does { fail, read, overlap } does = Does::fail;

 protected:
  std::span<const StateSpec> state_specs(const OwnOptions&) const override {
    static constexpr StateSpec specs[] = {{"sum"}};
    return specs;
  }
  void update(const OwnOptions& o, const Batch& batch) const override {
    foreach_add_(batch.steps, 1.0);
    foreach_add_(batch.states[0], batch.grads);
    if (does == Does::fail) static_cast<void>(batch.state("typo"));
    if (does == Does::overlap) {
      std::vector<Tensor> shifted(batch.params.begin(), batch.params.end());
      std::rotate(shifted.begin(), shifted.begin() + 1, shifted.end());
      foreach_add_(batch.params, TensorList(shifted));
    }
    const double steps = batch.steps[0].item();
    foreach_sub_scaled_(batch.params, batch.grads, o.lr * Scalar(steps));
  }
};

}  // namespace

TEST_CASE("mistakes of an optimizer of one's own change nothing either") {
  const auto params = make_params({{4}, {4}}, 1);
  Own own(params);
  const auto before = copies(params);
  CHECK(contains(message_of<Error>([&] { own.step(); }), "typo"));
  own.does = Own::Does::overlap;
  CHECK(contains(message_of<Error>([&] { own.step(); }), "overlaps"));
  CHECK(contains(message_of<Error>([&] { own.step(); }), "overlaps"));
  CHECK(same_bits(params, before));
  CHECK(own.steps() == 0);
  CHECK(own.states(params[0]).empty());

  own.does = Own::Does::read;
  own.step();
  own.step();
  CHECK(own.state(params[0], "step").item() == 2);
  // 1 and 2 times the gradient.
  const double x = before[0].to_vector()[0];
  const double g = before[0].grad().to_vector()[0];
  CHECK(params[0].to_vector()[0] == float(float(x - g) - float(2 * float(g))));
}

TEST_CASE("gradients that overlap their parameter are refused in every step") {
  const Tensor both = zeros({12});
  Tensor param = both.narrow(0, 0, 8);
  SGD sgd({param}, {.lr = 1});
  param.set_grad(full({8}, 1));
  sgd.step();
  param.set_grad(both.narrow(0, 4, 8));
  for (int tries = 0; tries < 3; ++tries) {
    CHECK(contains(message_of<Error>([&] { sgd.step(); }), "overlaps"));
    CHECK(param.to_vector() == std::vector<double>(8, -1));
    CHECK(sgd.state(param, "step").item() == 1);
    CHECK(sgd.steps() == 1);
  }
  param.set_grad(full({8}, 1));
  sgd.step();
  CHECK(param.to_vector() == std::vector<double>(8, -2));
}

TEST_CASE("masters that come too late are refused in every step") {
  Tensor param = full({8}, 1, bfloat16);
  param.set_grad(full({8}, 1, bfloat16));
  SGD sgd({param}, {.lr = 0.5, .momentum = 0.5});
  sgd.step();
  sgd.use_master_weights();
  for (int tries = 0; tries < 3; ++tries) {
    CHECK(contains(message_of<Error>([&] { sgd.step(); }),
                   "switch them on before the first step"));
    CHECK(param.to_vector() == std::vector<double>(8, 0.5));
    CHECK(sgd.steps() == 1);
  }
  sgd.use_master_weights(false);
  sgd.step();
  CHECK(param.to_vector() == std::vector<double>(8, -0.25));
}

TEST_CASE("what clips gradients finds their lists after a step that failed") {
  std::vector<Tensor> params;
  for (const DType dtype : {float32, float64}) {
    params.push_back(zeros({8}, dtype));
    params.back().set_grad(full({8}, 2, dtype));
  }
  SGD sgd({{{params[0]}, {.lr = 0.5}}, {{params[1]}, {.lr = 0.25}}});
  sgd.step();
  params[1].impl()->grad = zeros({3}, float64).impl();
  CHECK(contains(message_of<Error>([&] { sgd.step(); }), "[3]"));
  params[1].set_grad(full({8}, 2, float64));
  auto step = compile([&] {
    clip_grad_value_(params, 1);
    sgd.step();
  });
  step();
  CHECK(step.counters().launches == 1);
  CHECK(params[0].to_vector() == std::vector<double>(8, -1.5));
  CHECK(params[1].to_vector() == std::vector<double>(8, -0.75));
}

TEST_CASE("an error that is caught inside cannot leave half a step") {
  const auto params = make_params({{4}, {4}}, 1);
  Own own(params);
  Adam other(params);
  bool caught = false;
  auto step = compile([&] {
    other.step();
    try {
      own.step();
    } catch (const Error&) {  // and go on
      caught = true;
    }
  });
  const auto before = copies(params);
  CHECK(contains(message_of<Error>([&] { step(); }),
                 "a step failed half-way in a compiled function"));
  CHECK(caught);
  CHECK(own.steps() == 0);
  CHECK(other.steps() == 0);
  CHECK(other.states(params[0]).empty());
  CHECK(same_bits(params, before));
}
