// Numbers of groups that are updated together: whatever is done to one is
// noticed, and those that stay are not looked at.
#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/optim/all.h"
#include "fusebook/trace/number_changes.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;

namespace {

using Which = NumberChanges::Which;

std::vector<Which> told(const NumberChanges& changes) {
  return {changes.numbers().begin(), changes.numbers().end()};
}

Tensor with_gradient(double value, double gradient) {
  Tensor param = full({2}, value, DType::float64);
  param.set_grad(full({2}, gradient, DType::float64));
  return param;
}

constexpr std::size_t group_count = 10;

// Parameter g is g + 1, its gradient 1, its rate as it is said.
std::vector<SGD::Group> groups_with(const std::vector<double>& rates) {
  std::vector<SGD::Group> groups;
  for (std::size_t g = 0; g < rates.size(); ++g) {
    groups.push_back({{with_gradient(double(g) + 1, 1)}, {.lr = rates[g]}});
  }
  return groups;
}

std::vector<double> first_rates() {
  std::vector<double> rates;
  for (std::size_t g = 0; g < group_count; ++g) {
    rates.push_back(0.25 * double(g + 1));
  }
  return rates;
}

}  // namespace

TEST_CASE("a number tells of what is done where it stands") {
  const auto changes = std::make_shared<NumberChanges>(4);
  Scalar number = 1.0;
  number.watch(changes, {3, 1});
  CHECK(told(*changes).empty());
  Scalar copy = number;
  copy = 5.0;
  copy.assign(6);
  CHECK(told(*changes).empty());

  number = copy;
  CHECK(told(*changes) == std::vector<Which>{{3, 1}});
  number.assign(2);
  number.set_moves();
  CHECK(told(*changes).size() == 3);
  CHECK_FALSE(changes->all());
  changes->clear();
  CHECK(told(*changes).empty());

  // A tensor holds what it is assigned; another tensor is another number.
  number = tensor(1.0);
  number.assign(2);
  CHECK(told(*changes).size() == 1);
  for (int i = 0; i < 4; ++i) number.set_scheduled();
  CHECK(told(*changes).size() == 4);
  CHECK(changes->all());
}

TEST_CASE("a number that goes, or tells somebody else, is a change") {
  const auto changes = std::make_shared<NumberChanges>(4);
  const auto others = std::make_shared<NumberChanges>(4);
  {
    Scalar number = 1.0;
    number.watch(changes, {0, 0});
    number.watch(changes, {0, 0});
    CHECK(told(*changes).empty());
  }
  CHECK(told(*changes).size() == 1);
  changes->clear();
  Scalar number = 1.0;
  number.watch(changes, {0, 0});
  number.watch(others, {2, 0});
  CHECK(told(*changes).size() == 1);
  number = 2.0;
  CHECK(told(*changes).size() == 1);
  CHECK(told(*others) == std::vector<Which>{{2, 0}});
}

namespace {

// Changes rates, and says what they are then.
using Change = std::function<void(SGD&, std::vector<double>&)>;

const std::vector<std::pair<std::string, Change>>& all_changes() {
  using Rates = std::vector<double>;
  static const std::vector<std::pair<std::string, Change>> all = {
      {"nothing", [](SGD&, Rates&) {}},
      {"assign",
       [](SGD& sgd, Rates& rates) {
         sgd.param_groups[7].options.lr.assign(rates[7] = 3);
       }},
      {"operator=",
       [](SGD& sgd, Rates& rates) {
         sgd.param_groups[2].options.lr = rates[2] = 0.5;
       }},
      {"by name",
       [](SGD& sgd, Rates& rates) {
         sgd.param_groups[0]["lr"] = rates[0] = 8;
       }},
      {"all options",
       [](SGD& sgd, Rates& rates) {
         sgd.param_groups[9].options = SGDOptions{.lr = rates[9] = 2};
       }},
      {"two in turn",
       [](SGD& sgd, Rates& rates) {
         std::swap(sgd.param_groups[1].options.lr,
                   sgd.param_groups[8].options.lr);
         std::swap(rates[1], rates[8]);
       }},
      {"another group",
       [](SGD& sgd, Rates& rates) {
         rates[4] = 1.5;
         sgd.param_groups[4] =
             SGD::Group(sgd.param_groups[4].params, {.lr = rates[4]});
       }},
      {"other groups, elsewhere",
       [](SGD& sgd, Rates& rates) {
         auto copy = sgd.param_groups;
         copy[5].options.lr = rates[5] = 0.125;
         sgd.param_groups = std::move(copy);
         sgd.param_groups[6].options.lr = rates[6] = 0.125;
       }},
      {"the same memory, made anew",
       [](SGD& sgd, Rates& rates) {
         const auto copy = sgd.param_groups;
         sgd.param_groups.clear();
         for (const auto& group : copy) sgd.param_groups.push_back(group);
         sgd.param_groups[3].options.lr = rates[3] = 0.75;
       }},
      {"another optimizer had them",
       [](SGD& sgd, Rates& rates) {
         SGD other(groups_with({1, 2, 3, 4, 5, 6, 7, 8}));
         other.param_groups.swap(sgd.param_groups);
         for (auto& group : other.param_groups) group.params[0].set_grad({});
         other.step();  // its numbers tell it now
         for (auto& group : other.param_groups) {
           group.params[0].set_grad(full({2}, 1, DType::float64));
         }
         other.step();
         for (auto& group : other.param_groups) {
           // What that step did is taken back.
           Tensor param = group.params[0];
           const double value = param.to_vector()[0];
           param.fill_(value + group.options.lr.value());
         }
         other.param_groups[2].options.lr = rates[2] = 0.375;
         other.param_groups.swap(sgd.param_groups);
       }},
      {"the optimizer moves",
       [](SGD& sgd, Rates& rates) {
         SGD elsewhere(std::move(sgd));
         elsewhere.param_groups[1].options.lr = rates[1] = 0.625;
         sgd = std::move(elsewhere);
       }},
      {"more often than is counted",
       [](SGD& sgd, Rates& rates) {
         for (int i = 0; i < 500; ++i) {
           sgd.param_groups[0].options.lr = rates[0] = 0.25 * i;
         }
         sgd.param_groups[8].options.lr = rates[8] = 0.25;
       }},
      {"a tensor",
       [](SGD& sgd, Rates& rates) {
         rates[6] = 0.5;
         sgd.param_groups[6].options.lr = full({}, 0.5, DType::float64);
       }},
      {"in the tensor",
       [](SGD& sgd, Rates& rates) {
         sgd.param_groups[6].options.lr.assign(rates[6] = 0.25);
       }},
      {"a number again",
       [](SGD& sgd, Rates& rates) {
         sgd.param_groups[6].options.lr = rates[6] = 1;
       }},
  };
  return all;
}

}  // namespace

TEST_CASE("whatever is done to a rate is noticed") {
  for (const bool compiled : {false, true}) {
    for (std::size_t first = 0; first < all_changes().size(); ++first) {
      std::vector<double> rates = first_rates();
      std::vector<double> values;
      for (std::size_t g = 0; g < group_count; ++g) {
        values.push_back(double(g) + 1);
      }
      SGD sgd(groups_with(rates));
      auto step = compile([&] { sgd.step(); });
      const auto check_step = [&] {
        if (compiled) {
          step();
        } else {
          sgd.step();
        }
        for (std::size_t g = 0; g < group_count; ++g) {
          values[g] -= rates[g];
          REQUIRE(sgd.group(g).params[0].to_vector()[0] == values[g]);
        }
      };
      check_step();
      for (std::size_t i = 0; i < all_changes().size(); ++i) {
        const auto& [name, change] =
            all_changes()[(first + i * 4) % all_changes().size()];
        CAPTURE(compiled);
        CAPTURE(name);
        change(sgd, rates);
        check_step();
        check_step();
      }
    }
  }
}

namespace {

// Says how often its numbers are looked at.
struct CountingOptions {
  Scalar lr = 0.5;
  bool foreach = true;
  static inline int visits = 0;

  template <class F>
  void for_each_scalar(F f) {
    ++visits;
    f("lr", lr);
  }
  template <class F>
  void for_each_flag(F) {}
  void validate() const {}
};

class Counted : public ListOptimizer<CountingOptions> {
 public:
  using ListOptimizer::ListOptimizer;

 protected:
  std::span<const StateSpec> state_specs(
      const CountingOptions&) const override {
    return {};
  }
  void update(const CountingOptions& o, const Batch& batch) const override {
    foreach_add_(batch.steps, 1.0);
    foreach_sub_scaled_(batch.params, batch.grads, o.lr);
  }
};

}  // namespace

TEST_CASE("numbers that stay are not looked at, however many there are") {
  int visits_of_few = 0;
  for (const std::size_t count : {10, 1000}) {
    std::vector<Counted::Group> groups;
    for (std::size_t g = 0; g < count; ++g) {
      groups.push_back(
          {{with_gradient(double(g), 1)}, {.lr = 1.0 + double(g)}});
    }
    Counted counted(groups);
    auto step = compile([&] { counted.step(); });
    step();
    counted.param_groups[3].options.lr = 0.5;
    step();
    CountingOptions::visits = 0;
    step();
    counted.param_groups[4].options.lr = 0.25;
    step();
    if (count == 10) visits_of_few = CountingOptions::visits;
    CHECK(CountingOptions::visits == visits_of_few);
    CHECK(counted.group(3).params[0].to_vector()[0] == 3 - 4 - 3 * 0.5);
    CHECK(counted.group(4).params[0].to_vector()[0] == 4 - 5 * 3 - 0.25);
  }
}

TEST_CASE("groups with tensors of several dtypes, in several lists") {
  std::vector<SGD::Group> groups;
  for (std::size_t g = 0; g < group_count; ++g) {
    Tensor single = full({3}, 1);
    single.set_grad(full({3}, 1));
    groups.push_back({{with_gradient(1, 1), single}, {.lr = 0.5}});
  }
  SGD sgd(groups);
  auto step = compile([&] { sgd.step(); });
  step();
  for (int i = 0; i < 3; ++i) {
    sgd.param_groups[7].options.lr.assign(0.25);
    sgd.param_groups[2].options.lr = 0.125;
    step();
  }
  const auto value = [&](std::size_t g, std::size_t k) {
    return sgd.group(g).params[k].to_vector()[0];
  };
  for (const std::size_t k : {0, 1}) {
    CHECK(value(0, k) == 1 - 4 * 0.5);
    CHECK(value(7, k) == 1 - 0.5 - 3 * 0.25);
    CHECK(value(2, k) == 1 - 0.5 - 3 * 0.125);
  }
}
