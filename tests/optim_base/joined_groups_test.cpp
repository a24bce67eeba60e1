// Groups that differ in numbers alone are updated as one: the same bits as group
// by group, and work that does not grow with their number.
#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/optim/all.h"
#include "fusebook/optim_base/gradients.h"
#include "fusebook/support/error.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;

namespace {

enum class Way { eager, compiled, interpreted };
constexpr Way all_ways[] = {Way::eager, Way::compiled, Way::interpreted};

// Steps an optimizer, and counts what a function around it causes.
class Stepper {
 public:
  Stepper(Optimizer& optimizer, Way way) : optimizer_(optimizer) {
    if (way == Way::eager) return;
    const Backend backend =
        way == Way::compiled ? Backend::compiled : Backend::interpreted;
    step_.emplace(compile(std::function<void()>([this] { optimizer_.step(); }),
                          {.backend = backend}));
  }
  void operator()() {
    if (step_) {
      (*step_)();
    } else {
      optimizer_.step();
    }
  }
  Counters counters() const { return step_ ? step_->counters() : Counters(); }
  const std::vector<RecompileReport>& reports() const {
    return step_->recompile_reports();
  }

 private:
  Optimizer& optimizer_;
  std::optional<Compiled<std::function<void()>>> step_;
};

// SGD that counts how often its update is asked for.
class Counting : public SGD {
 public:
  using SGD::SGD;
  mutable int updates = 0;

 protected:
  void update(const SGDOptions& o, const Batch& batch) const override {
    ++updates;
    SGD::update(o, batch);
  }
};

Tensor number(double value) { return full({2}, value, DType::float64); }

Tensor with_gradient(double value, double gradient) {
  Tensor param = number(value);
  param.set_grad(number(gradient));
  return param;
}

// One group with one number, and what plain arithmetic makes of it.
struct Plain {
  double value;
  double gradient;
  double lr;
  double weight_decay;
  void step() {
    const double g =
        weight_decay == 0 ? gradient : gradient + weight_decay * value;
    value = value - g * lr;
  }
};

std::vector<Plain> plain_groups(std::size_t count) {
  std::vector<Plain> all;
  for (std::size_t g = 0; g < count; ++g) {
    const auto x = double(g);
    all.push_back({1 + 0.1 * x, 0.3 - 0.07 * x, 0.01 + 0.003 * x,
                   g % 3 == 0 ? 0 : 0.1 / (x + 1)});
  }
  return all;
}

std::vector<SGD::Group> groups_of(const std::vector<Plain>& all, bool tensors) {
  std::vector<SGD::Group> groups;
  for (const Plain& each : all) {
    SGDOptions options{.lr = each.lr, .weight_decay = each.weight_decay};
    if (tensors) options.lr = full({}, each.lr, DType::float64);
    groups.push_back({{with_gradient(each.value, each.gradient)}, options});
  }
  return groups;
}

// As many as are updated together.
std::vector<SGD::Group> more_groups() {
  return groups_of(plain_groups(8), false);
}

void check_values(const SGD& sgd, const std::vector<Plain>& all) {
  for (std::size_t g = 0; g < all.size(); ++g) {
    for (const double value : sgd.group(g).params[0].to_vector()) {
      CHECK(value == all[g].value);
    }
  }
}

}  // namespace

TEST_CASE("many groups: plain arithmetic for each of them") {
  for (const Way way : all_ways) {
    for (const bool tensors : {false, true}) {
      CAPTURE(int(way));
      CAPTURE(tensors);
      auto plain = plain_groups(10);
      SGD sgd(groups_of(plain, tensors));
      Stepper step(sgd, way);
      for (int i = 0; i < 8; ++i) {
        for (std::size_t g = 0; g < plain.size(); ++g) {
          plain[g].lr *= i < 4 ? 0.9 + 0.01 * double(g) : 0.5;
          if (i == 5) plain[g].lr = 0.125;  // all the same for once
          if (i == 6 && g == 4) plain[g].weight_decay = 0;
          sgd.param_groups[g].options.lr.assign(plain[g].lr);
          sgd.param_groups[g].options.weight_decay = plain[g].weight_decay;
          plain[g].step();
        }
        step();
        check_values(sgd, plain);
      }
      if (way == Way::eager) continue;
      CHECK(step.counters().launches == 8);
      CHECK(step.counters().graph_breaks == 0);
      CHECK(step.counters().compilations <= 3);
    }
  }
}

TEST_CASE("the update is asked for once, however many groups there are") {
  for (const bool tensors : {false, true}) {
    for (const std::size_t count : {8, 40}) {
      auto plain = plain_groups(count);
      for (Plain& each : plain) each.weight_decay = 0.5;
      Counting sgd(groups_of(plain, tensors));
      auto step = compile([&] { sgd.step(); });
      step();
      for (int i = 0; i < 4; ++i) {
        for (auto& group : sgd.param_groups) {
          group.options.lr.assign(group.options.lr.value() * 0.5);
        }
        sgd.updates = 0;
        step();
        CHECK(sgd.updates == 1);
      }
      sgd.updates = 0;
      sgd.step();
      CHECK(sgd.updates <= 2);  // eager steps are rehearsed
    }
  }
}

TEST_CASE("a zero weight decay splits groups in two, not in all") {
  auto plain = plain_groups(30);
  Counting sgd(groups_of(plain, false));
  auto step = compile([&] { sgd.step(); });
  step();
  sgd.updates = 0;
  step();
  CHECK(sgd.updates == 2);
}

TEST_CASE("as group by group, whatever happens to them") {
  for (const Way way : all_ways) {
    CAPTURE(int(way));
    const auto options = [](std::size_t g) {
      AdamOptions o{.lr = 0.01 * double(g + 1),
                    .betas = {0.9, g < 2 ? 0.99 : 0.95},
                    .weight_decay = g == 1 ? 0.1 : 0.0,
                    .amsgrad = g == 3};
      if (g == 2) o.lr = tensor(0.02);
      return o;
    };
    const auto shapes = [](std::size_t g) {
      return std::vector<Shape>{{std::int64_t(g) + 1}, {3, 2}, {0}};
    };
    std::vector<std::unique_ptr<Adam>> alone;
    std::vector<Adam::Group> groups;
    for (std::size_t g = 0; g < 14; ++g) {
      const auto params = make_params(shapes(g), g + 1);
      groups.emplace_back(copies(params), options(g));
      alone.push_back(std::make_unique<Adam>(
          std::vector<Adam::Group>{{params, options(g)}}));
    }
    const Adam::Group late = groups.back();
    groups.pop_back();
    Adam joined(groups);
    Stepper step(joined, way);
    const auto each =
        [&](const std::function<void(Adam::Group&, std::size_t)>& change) {
          for (std::size_t g = 0; g < joined.group_count(); ++g) {
            change(joined.param_groups[g], g);
            change(alone[g]->param_groups[0], g);
          }
        };
    std::vector<Tensor> kept;
    for (int i = 0; i < 12; ++i) {
      CAPTURE(i);
      each([&](Adam::Group& group, std::size_t g) {
        if (i == 2) group.options.lr.assign(0.003);
        if (i == 3) group.options.lr.assign(0.001 * double(g + 3));
        if (i == 4 && g == 0) group.options.lr = tensor(0.5);
        if (i == 6 && g == 1) group.options.maximize = true;
        if (i == 7 && g == 0) {
          kept.push_back(group.params[1].grad());
          group.params[1].set_grad(Tensor());
        }
        if (i == 9 && g == 0) {
          group.params[1].set_grad(kept.front());
          kept.erase(kept.begin());
        }
      });
      if (i == 5) joined.add_param_group(late);
      step();
      for (std::size_t g = 0; g < joined.group_count(); ++g) {
        alone[g]->step();
        CHECK(same_bits(joined.param_groups[g].params,
                        alone[g]->param_groups[0].params));
      }
    }
    if (way != Way::eager) CHECK(step.counters().launches == 12);
  }
}

TEST_CASE("a rate that moves in one group is named") {
  auto plain = plain_groups(9);
  for (Plain& each : plain) each = {1, 1, 0.5, 0.25};
  SGD sgd(groups_of(plain, false));
  Stepper step(sgd, Way::interpreted);
  step();
  CHECK(step.counters().recompiles == 0);
  sgd.param_groups[2]["lr"] = 0.25;
  step();
  REQUIRE(step.reports().size() == 1);
  REQUIRE(step.reports()[0].failures.size() == 1);
  CHECK(step.reports()[0].failures[0].path == "param_groups[2][\"lr\"]");
  CHECK(step.reports()[0].failures[0].guarded == 0.5);
  CHECK(step.reports()[0].failures[0].now == 0.25);
  for (auto& group : sgd.param_groups) group["lr"] = 0.125;
  step();
  sgd.param_groups[1]["momentum"];  // looked up, not moved
  step();
  CHECK(step.counters().compilations == 2);
}

// ---- updates that look at numbers -------------------------------------------

namespace {

struct OwnOptions {
  Scalar lr = 0.5;
  Scalar limit = 1.0;
  int power = 1;  // no switch that is listed
  bool foreach = true;

  template <class F>
  void for_each_scalar(F f) {
    f("lr", lr);
    f("limit", limit);
  }
  template <class F>
  void for_each_flag(F) {}
  void validate() const {}
};

// Takes powers of gradients, and looks at no number.
class Powers : public ListOptimizer<OwnOptions> {
 public:
  using ListOptimizer::ListOptimizer;
  mutable int updates = 0;

 protected:
  std::span<const StateSpec> state_specs(const OwnOptions&) const override {
    return {};
  }
  void update(const OwnOptions& o, const Batch& batch) const override {
    ++updates;
    foreach_add_(batch.steps, 1.0);
    TensorList grads = batch.grads;
    for (int i = 1; i < o.power; ++i) grads = foreach_mul(grads, batch.grads);
    foreach_sub_scaled_(batch.params, grads, o.lr);
  }
};

// Does another thing where the square of its rate is above a limit.
class Own : public ListOptimizer<OwnOptions> {
 public:
  using ListOptimizer::ListOptimizer;

 protected:
  std::span<const StateSpec> state_specs(const OwnOptions&) const override {
    return {};
  }
  void update(const OwnOptions& o, const Batch& batch) const override {
    const Scalar square = o.lr * o.lr;
    foreach_add_(batch.steps, 1.0);
    TensorList grads = batch.grads;
    for (int i = 1; i < o.power; ++i) grads = foreach_mul(grads, batch.grads);
    if (square.value() > o.limit.value()) {
      foreach_mul_(batch.params, 0.5);
    } else {
      foreach_sub_scaled_(batch.params, grads, square);
    }
  }
};

}  // namespace

TEST_CASE("groups whose other options differ are not updated together") {
  std::vector<Powers::Group> groups;
  for (int g = 0; g < 18; ++g) {
    groups.push_back({{with_gradient(double(g), 3)},
                      OwnOptions{.lr = 0.25, .power = g % 2 + 1}});
  }
  Powers opt(groups);
  auto step = compile([&] { opt.step(); });
  for (int i = 1; i <= 3; ++i) {
    step();
    opt.updates = 0;
    for (int g = 0; g < 18; ++g) {
      const double gradient = g % 2 == 0 ? 3 : 9;
      CHECK(opt.group(std::size_t(g)).params[0].to_vector()[0] ==
            double(g) - 0.25 * gradient * i);
    }
  }
  step();
  CHECK(opt.updates == 2);
}

TEST_CASE("an update may ask for values, and have options of its own") {
  for (const Way way : all_ways) {
    for (const bool tensors : {false, true}) {
      CAPTURE(int(way));
      std::vector<double> values;
      std::vector<Own::Group> groups;
      const auto rate = [](std::size_t g, int i) {
        return 0.25 * double((g + std::size_t(i)) % 6 + 1);
      };
      for (std::size_t g = 0; g < 18; ++g) {
        values.push_back(double(g) + 1);
        OwnOptions o{.lr = rate(g, 0), .power = int(g % 2) + 1};
        if (tensors) o.lr = full({}, rate(g, 0), DType::float64);
        groups.push_back({{with_gradient(values[g], 3)}, o});
      }
      Own own(groups);
      Stepper step(own, way);
      for (int i = 0; i < 7; ++i) {
        for (std::size_t g = 0; g < values.size(); ++g) {
          own.param_groups[g].options.lr.assign(rate(g, i));
          const double square = rate(g, i) * rate(g, i);
          const double gradient = g % 2 == 0 ? 3 : 9;
          values[g] =
              square > 1 ? values[g] * 0.5 : values[g] - gradient * square;
        }
        step();
        for (std::size_t g = 0; g < values.size(); ++g) {
          CHECK(own.group(g).params[0].to_vector()[0] == values[g]);
        }
      }
    }
  }
}

TEST_CASE("groups that share memory are updated one after the other") {
  for (const Way way : all_ways) {
    CAPTURE(int(way));
    const Tensor base = full({4}, 1, DType::float64);
    Tensor low = base.narrow(0, 0, 3);
    Tensor high = base.narrow(0, 1, 3);
    low.set_grad(full({3}, 1, DType::float64));
    high.set_grad(full({3}, 1, DType::float64));
    // p - lr * (1 + wd * p): the second group sees what the first one did.
    std::vector<SGD::Group> groups = more_groups();
    groups.push_back({{low}, {.lr = 0.5, .weight_decay = 1}});
    groups.push_back({{high}, {.lr = 0.25, .weight_decay = 1}});
    SGD sgd(groups);
    Stepper step(sgd, way);
    step();
    CHECK(base.to_vector() == std::vector<double>{0, -0.25, -0.25, 0.5});
    // A gradient that lies in a parameter of the other group.
    high.set_grad(base.narrow(0, 0, 3));
    step();
  }
}

TEST_CASE("a rate that a group before has changed is the new one") {
  for (const Way way : all_ways) {
    CAPTURE(int(way));
    const Tensor rate = full({}, 0.5, DType::float64);
    Tensor learnt = rate;
    learnt.set_grad(full({}, 1, DType::float64));
    std::vector<SGD::Group> groups = more_groups();
    const std::size_t own = groups.size();
    groups.insert(groups.begin(), {{learnt}, {.lr = 0.25}});
    groups.push_back({{with_gradient(1, 1)}, {.lr = rate}});
    for (std::size_t g = 1; g <= own; ++g) {
      groups[g].options.lr = full({}, 0.5, DType::float64);
    }
    SGD sgd(groups);
    Stepper step(sgd, way);
    step();
    // 1 - (0.5 - 0.25)
    CHECK(sgd.group(own + 1).params[0].to_vector()[0] == 0.75);
  }
}
