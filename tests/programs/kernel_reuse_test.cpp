// What differs only in which lists take part runs on a kernel that is there;
// what truly differs has a limit.
#include <doctest/doctest.h>

#include <bit>
#include <memory>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/device/device.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/ir/plan_reuse.h"
#include "fusebook/optim/adam.h"
#include "fusebook/support/error.h"
#include "fusebook/support/source_place.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;

namespace {

// Groups of an Adam beside those of an eager one, with gradients that come and
// go.
struct Groups {
  explicit Groups(const std::vector<AdamOptions>& options) {
    std::vector<Adam::Group> mine;
    std::vector<Adam::Group> theirs;
    for (const AdamOptions& each : options) {
      const auto params = make_params(mixed_shapes(5), mine.size() + 1);
      for (const Tensor& param : params) grads.push_back(param.grad());
      mine.emplace_back(params, each);
      theirs.emplace_back(copies(params), each);
      for (const Tensor& param : theirs.back().params) {
        twin_grads.push_back(param.grad());
      }
    }
    compiled = std::make_unique<Adam>(mine);
    eager = std::make_unique<Adam>(theirs);
  }

  // Leaves gradients in the groups whose bit is set.
  void choose(unsigned groups) {
    std::size_t i = 0;
    for (std::size_t g = 0; g < compiled->group_count(); ++g) {
      const bool with = (groups >> g & 1U) != 0;
      for (std::size_t k = 0; k < compiled->group(g).params.size(); ++k, ++i) {
        compiled->group(g).params[k].set_grad(with ? grads[i] : Tensor());
        eager->group(g).params[k].set_grad(with ? twin_grads[i] : Tensor());
      }
    }
  }
  bool same() const {
    return same_bits(compiled->parameters(), eager->parameters());
  }

  std::vector<Tensor> grads;
  std::vector<Tensor> twin_grads;
  std::unique_ptr<Adam> compiled;
  std::unique_ptr<Adam> eager;
};

const std::vector<AdamOptions> alike(4, {.lr = 0.01});
const std::vector<AdamOptions> other_rates = {
    {.lr = 0.01}, {.lr = 0.02}, {.lr = 0.03}, {.lr = 0.04}};
const std::vector<AdamOptions> other_code = {{.lr = 0.01},
                                             {.lr = 0.01, .weight_decay = 0.1},
                                             {.lr = 0.01, .amsgrad = true},
                                             {.lr = 0.01, .maximize = true}};

std::vector<AdamOptions> with_tensors() {
  std::vector<AdamOptions> options = other_code;
  for (AdamOptions& each : options) each.lr = tensor(each.lr.value());
  return options;
}

const std::vector<unsigned> all_first = {15, 1,  2,  4, 8,  3,  5, 9,
                                         6,  10, 12, 7, 11, 13, 14};
const std::vector<unsigned> one_after_the_other = {1, 2,  3,  4,  5,  6,  7, 8,
                                                   9, 10, 11, 12, 13, 14, 15};

Counters counters_of(const std::vector<AdamOptions>& options,
                     const std::vector<unsigned>& calls, Backend backend) {
  Groups groups(options);
  auto step = compile([&] { groups.compiled->step(); }, {.backend = backend});
  for (int round = 0; round < 2; ++round) {
    for (const unsigned chosen : calls) {
      groups.choose(chosen);
      step();
      groups.eager->step();
      REQUIRE(groups.same());
      assert_fused(step);
    }
  }
  CHECK(step.counters().launches == 2 * std::int64_t(calls.size()));
  CHECK(step.counters().recompiles == step.counters().compilations - 1);
  CHECK(step.recompile_reports().size() ==
        std::size_t(step.counters().recompiles));
  return step.counters();
}

void check_compilations(const std::vector<AdamOptions>& options,
                        const std::vector<unsigned>& calls,
                        std::int64_t compilations) {
  for (const Backend backend : {Backend::compiled, Backend::interpreted}) {
    CHECK(counters_of(options, calls, backend).compilations == compilations);
  }
}

}  // namespace

TEST_CASE("groups that come and go find their bodies in the first kernel") {
  check_compilations(alike, all_first, 1);
  check_compilations(other_code, all_first, 1);
  // One kernel for several rates in a column serves one of them, too.
  check_compilations(other_rates, all_first, 1);
  check_compilations(with_tensors(), all_first, 1);
}

TEST_CASE("groups that come one after the other cost what is new") {
  // One body, whatever the number of groups.
  check_compilations(alike, one_after_the_other, 1);
  // A baked rate, one that is an argument, and one in a column.
  check_compilations(other_rates, one_after_the_other, 3);
  // A kernel for each kind, which has the bodies of those before it, too: they
  // may meet.
  check_compilations(other_code, one_after_the_other, 4);
  check_compilations(with_tensors(), one_after_the_other, 4);
}

TEST_CASE("so they do on a simulated GPU") {
  CHECK(counters_of(other_code, {15, 1, 6, 8, 15}, Backend::simulated)
            .compilations == 1);
  CHECK(
      counters_of(with_tensors(), {1, 2, 3}, Backend::simulated).compilations ==
      2);
}

TEST_CASE("rates move while groups come and go") {
  Groups groups(other_code);
  auto step = compile([&] { groups.compiled->step(); });
  int call = 0;
  for (const unsigned chosen : all_first) {
    groups.choose(chosen);
    ++call;
    for (Adam* adam : {groups.compiled.get(), groups.eager.get()}) {
      for (auto& group : adam->param_groups) group["lr"] = 0.01 / call;
    }
    step();
    groups.eager->step();
    REQUIRE(groups.same());
  }
  // As without coming and going: one for the first values, one for all others.
  CHECK(step.counters().compilations == 2);
  CHECK(step.counters().launches == std::int64_t(all_first.size()));
}

TEST_CASE("lists in a loop are one body, whatever their number") {
  std::vector<TensorList> lists;
  std::vector<TensorList> twins;
  for (int i = 0; i < 30; ++i) {
    const auto params = make_params({{i + 1}, {}}, std::uint64_t(i));
    lists.emplace_back(params);
    twins.emplace_back(copies(params));
  }
  std::size_t length = 0;
  const auto body = [&](const std::vector<TensorList>& all) {
    for (std::size_t i = 0; i < length; ++i) foreach_mul_(all[i], 0.5);
  };
  auto step = compile([&] { body(lists); });
  for (length = 1; length <= lists.size(); ++length) {
    step();
    body(twins);
    for (std::size_t i = 0; i < lists.size(); ++i) {
      REQUIRE(bitwise_equal(lists[i], twins[i]));
    }
  }
  CHECK(step.counters().compilations == 1);
  CHECK(step.counters().launches == 30);
}

TEST_CASE("a number baked for others is not taken for one's own") {
  const TensorList a(make_params({{3}}, 1));
  const TensorList b(make_params({{4}}, 2));
  const TensorList twin_a(copies(a.tensors()));
  const TensorList twin_b(copies(b.tensors()));
  bool both = false;
  double factor = 0.5;
  const auto body = [&](const TensorList& x, const TensorList& y) {
    for (const TensorList& list : both ? std::vector{x, y} : std::vector{x}) {
      foreach_mul_(list, factor);
    }
  };
  auto step = compile([&] { body(a, b); });
  for (const bool with : {false, true, false, true}) {
    both = with;
    factor *= 0.75;
    step();
    body(twin_a, twin_b);
    REQUIRE(bitwise_equal(a, twin_a));
    REQUIRE(bitwise_equal(b, twin_b));
  }
}

TEST_CASE("a float that becomes a tensor needs no kernel once it is an input") {
  const auto params = make_params({{3}, {5}}, 1);
  const auto twins = copies(params);
  Adam adam(params, {.lr = 0.01});
  Adam eager(twins, {.lr = 0.01});
  auto step = compile([&] { adam.step(); });
  const auto both = [&] {
    step();
    eager.step();
    return same_bits(params, twins);
  };
  CHECK(both());
  for (Adam* each : {&adam, &eager}) each->param_groups[0]["lr"] = 0.02;
  CHECK(both());
  CHECK(step.counters().compilations == 2);
  for (Adam* each : {&adam, &eager}) {
    each->param_groups[0].options.lr = Scalar(tensor(0.03, DType::float64));
  }
  CHECK(both());
  CHECK(step.counters().compilations == 2);
}

TEST_CASE("lists of another dtype, or with strides, are other code") {
  TensorList list({zeros({4, 4})});
  auto step = compile([&] { foreach_add_(list, 1.0); });
  step();
  list = TensorList({zeros({4, 4}, DType::float64)});
  step();
  CHECK(list[0].to_vector() == std::vector<double>(16, 1));
  list = TensorList({zeros({4, 4}).t()});
  step();
  CHECK(list[0].to_vector() == std::vector<double>(16, 1));
  CHECK(step.counters().compilations == 3);
}

TEST_CASE("many sets of groups in turn: old ones are forgotten, never wrong") {
  // More than the store keeps.
  std::vector<TensorList> lists;
  std::vector<double> expected(40, 0.0);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    lists.push_back(TensorList({zeros({2})}));
  }
  std::size_t length = 0;
  auto step = compile([&] {
    for (std::size_t i = 0; i < length; ++i) foreach_add_(lists[i], 1.0);
  });
  for (int round = 0; round < 2; ++round) {
    for (length = lists.size(); length > 0; --length) {
      step();
      for (std::size_t i = 0; i < length; ++i) expected[i] += 1;
    }
  }
  for (std::size_t i = 0; i < lists.size(); ++i) {
    REQUIRE(lists[i][0].to_vector() == std::vector<double>(2, expected[i]));
  }
  CHECK(step.counters().compilations == 1);
  CHECK(step.counters().launches == 80);
}

TEST_CASE("what was launched last can be launched again, adapted or not") {
  Groups groups(other_code);
  auto step = compile([&] { groups.compiled->step(); });
  for (const unsigned chosen : {15U, 2U}) {
    groups.choose(chosen);
    step();
    groups.eager->step();
  }
  step.relaunch();
  groups.eager->step();
  CHECK(groups.same());
  CHECK(step.counters().launches == 3);
}

TEST_CASE("reports show the bodies that a launch used, and no others") {
  Groups groups(other_code);
  auto step = compile([&] { groups.compiled->step(); });
  groups.choose(15);
  step();
  CHECK(testing::contains(step.report(), "launch 1: 20 tensors in 4 loops\n"));
  groups.choose(4);
  step();
  CHECK(testing::contains(step.report(), "launch 1: 5 tensors in 1 loop\n"));
  CHECK_FALSE(testing::contains(step.report(), "loop 2"));
  groups.choose(12);
  step();
  CHECK(testing::contains(step.report(), "launch 1: 10 tensors in 2 loops\n"));
  CHECK(testing::contains(step.report(), "loop 2, separate from loop 1: "));
}

TEST_CASE(
    "a recompile is an error under its policy, coming and going is none") {
  Groups groups(other_code);
  auto step = compile([&] { groups.compiled->step(); },
                      {.policy = Policy::fail_on_recompile});
  for (const unsigned chosen : all_first) {
    groups.choose(chosen);
    step();
    groups.eager->step();
  }
  CHECK(groups.same());
}

// ---- the limit --------------------------------------------------------------

namespace {

// The same list, over and over: each length is another body.
struct Loop {
  explicit Loop(Policy policy = Policy::promote, Backend backend = {})
      : step(compile(Step{this}, {.backend = backend, .policy = policy})) {}

  static void run(const TensorList& list, int times) {
    for (int i = 0; i < times; ++i) foreach_mul_(list, 0.5);
  }
  bool call(int times) {
    length = times;
    step();
    run(twin, times);
    return bitwise_equal(list, twin);
  }

  TensorList list{make_params({{3}, {2}}, 1)};
  TensorList twin{copies(list.tensors())};
  int length = 0;
  struct Step {
    Loop* loop;
    void operator()() const { run(loop->list, loop->length); }
  };
  Compiled<Step> step;
};

}  // namespace

TEST_CASE("thirty loop lengths: eight kernels, one warning, then eager") {
  for (const Policy policy : {Policy::promote, Policy::specialize}) {
    jit_testing::CapturedStderr captured;
    Loop loop(policy);
    for (int round = 0; round < 2; ++round) {
      for (int length = 1; length <= 30; ++length) {
        REQUIRE(loop.call(length));
      }
    }
    CHECK(loop.step.counters().compilations == 8);
    CHECK(loop.step.counters().recompiles == 7);
    // Eight lengths are one launch each; the others one an operation.
    std::int64_t launches = 8;
    for (int length = 9; length <= 30; ++length) launches += length;
    CHECK(loop.step.counters().launches == 2 * launches);
    CHECK(testing::contains(loop.step.report(),
                            "eager: the function has the maximum"));
    REQUIRE(loop.call(3));
    assert_fused(loop.step);
    const std::string text = captured.stop();
    CHECK(jit_testing::count_of(text, "\n") == 1);
    CHECK(testing::contains(text, "fusebook: warning: function step in " +
                                      short_path(__FILE__) + ":"));
    CHECK(testing::contains(
        text,
        " has 8 kernels for different operations; others run eagerly from "
        "now on (the recorded operations differ: operation 9, mul at "));
    CHECK(testing::contains(text, ", is new). Keep switches "));
  }
}

TEST_CASE("numbers that move are no operations that differ") {
  jit_testing::CapturedStderr captured;
  const TensorList list(make_params({{3}}, 1));
  std::vector<double> factors(12, 1.0);
  auto step = compile([&] {
    foreach_mul_(list, factors[0]);
    foreach_add_(list, factors[1]);
    foreach_sub_(list, factors[2]);
    foreach_mul_(list, factors[3]);
    foreach_add_(list, factors[4]);
    foreach_sub_(list, factors[5]);
    foreach_mul_(list, factors[6]);
    foreach_add_(list, factors[7]);
    foreach_sub_(list, factors[8]);
    foreach_mul_(list, factors[9]);
    foreach_add_(list, factors[10]);
    foreach_sub_(list, factors[11]);
  });
  step();
  for (double& factor : factors) {
    factor = 0.5;
    step();
  }
  CHECK(step.counters().compilations == 13);
  CHECK(step.counters().launches == 13);
  CHECK(captured.stop().empty());
}

TEST_CASE("a function at its limit still has numbers that may move") {
  jit_testing::CapturedStderr captured;
  const auto params = make_params({{3}}, 1);
  const TensorList list(params);
  const TensorList twin(copies(params));
  double shift = 1;
  int length = 0;
  const auto body = [&](const TensorList& all) {
    Loop::run(all, length);
    foreach_add_(all, shift);
  };
  auto step = compile([&] { body(list); });
  const auto call = [&](int wanted) {
    length = wanted;
    step();
    body(twin);
    REQUIRE(bitwise_equal(list, twin));
  };
  for (int each = 1; each <= 8; ++each) call(each);
  shift = 2;
  call(3);
  CHECK(step.counters().compilations == 9);
  CHECK(step.counters().launches == 9);
  CHECK(captured.stop().empty());
}

TEST_CASE("each segment between graph breaks has its own limit") {
  jit_testing::CapturedStderr captured;
  const TensorList list(make_params({{3}}, 1));
  const TensorList twin(copies(list.tensors()));
  const auto body = [](const TensorList& on) {
    for (int segment = 1; segment <= 12; ++segment) {
      Loop::run(on, segment);
      static_cast<void>(on[0].to_vector());
    }
  };
  auto step = compile([&] { body(list); });
  for (int call = 0; call < 2; ++call) {
    step();
    body(twin);
    CHECK(bitwise_equal(list, twin));
  }
  CHECK(step.counters().compilations == 12);
  CHECK(step.counters().recompiles == 0);
  CHECK(step.counters().launches == 24);
  CHECK(captured.stop().empty());
}

TEST_CASE("groups of more kinds than the limit are served by one kernel") {
  jit_testing::CapturedStderr captured;
  std::vector<TensorList> lists;
  std::vector<TensorList> twins;
  for (int i = 0; i < 12; ++i) {
    const auto params = make_params({{i + 1}}, std::uint64_t(i));
    lists.emplace_back(params);
    twins.emplace_back(copies(params));
  }
  unsigned chosen = 0;
  const auto body = [&](const std::vector<TensorList>& all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if ((chosen >> i & 1U) != 0) Loop::run(all[i], int(i) + 1);
    }
  };
  auto step = compile([&] { body(lists); });
  testing::Random random(7);
  for (int call = 0; call < 60; ++call) {
    chosen = call == 0 ? 4095U : unsigned(random.below(4095)) + 1;
    step();
    body(twins);
    for (std::size_t i = 0; i < lists.size(); ++i) {
      REQUIRE(bitwise_equal(lists[i], twins[i]));
    }
  }
  CHECK(step.counters().compilations == 1);
  CHECK(step.counters().launches == 60);
  CHECK(captured.stop().empty());
}
