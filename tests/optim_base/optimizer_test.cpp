#include "fusebook/optim_base/optimizer.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/optim/adam.h"
#include "fusebook/optim/sgd.h"
#include "fusebook/optim_base/group_batches.h"
#include "fusebook/reports/counters.h"
#include "fusebook/support/error.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;

namespace {

// Compiled and eager steps of two optimizers over equal parameters.
struct Twins {
  explicit Twins(const AdamOptions& options = {}, std::size_t count = 9)
      : params(make_params(mixed_shapes(count), 11)),
        twins(copies(params)),
        adam(params, options),
        eager(twins, options) {}
  Twins(const Twins&) = delete;
  Twins& operator=(const Twins&) = delete;

  // One step on both sides; true when they have the same bits.
  bool step() {
    compiled();
    eager.step();
    return same_bits(params, twins);
  }

  std::vector<Tensor> params;
  std::vector<Tensor> twins;
  Adam adam;
  Adam eager;
  struct Step {
    Adam* adam;
    void operator()() const { adam->step(); }
  };
  Compiled<Step> compiled = compile(Step{&adam});
};

std::string error_of(const std::vector<Adam::Group>& groups) {
  return testing::message_of<Error>([&] { Adam adam(groups); });
}

}  // namespace

// ---- groups -----------------------------------------------------------------

TEST_CASE("each group has numbers of its own") {
  const auto params = make_params({{4}, {4}}, 1);
  auto alone = copies(params);
  Adam adam({{{params[0]}, {.lr = 0.5}},
             {{params[1]}, {.lr = 0.25, .betas = {0.5, 0.75}}}});
  Adam first({alone[0]}, {.lr = 0.5});
  Adam second({alone[1]}, {.lr = 0.25, .betas = {0.5, 0.75}});
  auto step = compile([&] { adam.step(); });
  for (int i = 0; i < 3; ++i) {
    step();
    first.step();
    second.step();
  }
  CHECK(same_bits(params, alone));
  CHECK(step.counters().launches == 3);
  CHECK(step.counters().compilations == 1);
  CHECK(same_bits(adam.parameters(), params));
  CHECK(adam.group_count() == 2);
  CHECK(adam.group(1)["lr"].value() == 0.25);
}

TEST_CASE("groups of different structure are one launch too") {
  const auto params = make_params({{4}, {5}, {6}, {7}}, 1);
  const auto alone = copies(params);
  const std::vector<AdamOptions> options = {
      {.lr = 0.5},
      {.lr = 0.5, .amsgrad = true},
      {.lr = 0.5, .weight_decay = 0.1, .maximize = true},
      {.lr = tensor(0.5), .foreach = false}};
  std::vector<Adam::Group> groups;
  for (std::size_t g = 0; g < options.size(); ++g) {
    groups.emplace_back(std::vector<Tensor>{params[g]}, options[g]);
  }
  Adam adam(groups);
  auto step = compile([&] { adam.step(); });
  step();
  step();
  for (std::size_t g = 0; g < options.size(); ++g) {
    Adam single({alone[g]}, options[g]);
    single.step();
    single.step();
  }
  CHECK(same_bits(params, alone));
  CHECK(step.counters().launches == 2);
  CHECK(step.counters().compilations == 1);
}

TEST_CASE("an empty group is allowed beside others") {
  const auto params = make_params({{4}}, 1);
  Adam adam({{std::vector<Tensor>{}, {.lr = 1}}, {params, {.lr = 0.5}}});
  const auto twins = copies(params);
  Adam alone(twins, {.lr = 0.5});
  compile([&] { adam.step(); })();
  alone.step();
  CHECK(same_bits(params, twins));
}

TEST_CASE("what torch refuses is refused, with the place") {
  const auto params = make_params({{4}, {5}}, 1);
  CHECK(error_of({}) == "optimizer got an empty parameter list");
  CHECK(error_of({{std::vector<Tensor>{}}}) ==
        "optimizer got an empty parameter list");
  CHECK(error_of({{params}, {{params[1]}}}) ==
        "optimizer: parameter 0 of group 1 is the same tensor as parameter 1 "
        "of group 0; put each parameter in one group only");
  CHECK(error_of({{{params[0], params[1], params[0]}}}) ==
        "optimizer: parameter 2 of group 0 is the same tensor as parameter 0 "
        "of that group; list each parameter once");
  CHECK(error_of({{{params[0], Tensor()}}}) ==
        "optimizer: parameter 1 of group 0 is an undefined tensor");
  CHECK(error_of({{params, {.lr = 1}}, {{zeros({1})}, {.lr = -1}}}) ==
        "Adam: invalid learning rate: -1");
}

TEST_CASE("hyper-parameters go by their names") {
  Adam adam(make_params({{4}}, 1), {.lr = 0.5, .betas = {0.25, 0.75}});
  auto& group = adam.param_groups[0];
  CHECK(group["lr"].value() == 0.5);
  CHECK(group["betas[0]"].value() == 0.25);
  CHECK(group["betas[1]"].value() == 0.75);
  CHECK(group["eps"].value() == 1e-8);
  CHECK(group["weight_decay"].value() == 0);
  group["lr"] = 2;
  CHECK(group.options.lr.value() == 2);
  CHECK(testing::message_of<Error>([&] { group["momentum"]; }) ==
        "a parameter group of this optimizer has no \"momentum\"; it has lr, "
        "betas[0], betas[1], eps, weight_decay, amsgrad, maximize, "
        "decoupled_weight_decay");
}

// ---- gradients --------------------------------------------------------------

TEST_CASE("parameters without a gradient are left alone until they have one") {
  Twins twins;
  const Tensor late = twins.params[3];
  Tensor grad = late.grad();
  for (auto* list : {&twins.params, &twins.twins}) (*list)[3].set_grad({});
  const Tensor before = late.clone();
  CHECK(twins.step());
  CHECK(twins.step());
  CHECK(same_bits(late, before));
  CHECK_FALSE(twins.adam.state(late, "step").defined());
  CHECK_FALSE(twins.adam.state(late, "exp_avg").defined());

  for (auto* list : {&twins.params, &twins.twins}) (*list)[3].set_grad(grad);
  CHECK(twins.step());
  CHECK_FALSE(same_bits(late, before));
  CHECK(twins.adam.state(late, "step").item() == 1);
  CHECK(twins.adam.state(twins.params[0], "step").item() == 3);
  CHECK(twins.compiled.counters().compilations == 1);
  CHECK(twins.compiled.counters().launches == 3);

  // A gradient may go away again; what was learnt stays.
  const Tensor kept = twins.adam.state(late, "exp_avg").clone();
  for (auto* list : {&twins.params, &twins.twins}) (*list)[3].set_grad({});
  CHECK(twins.step());
  CHECK(twins.adam.state(late, "step").item() == 1);
  CHECK(same_bits(twins.adam.state(late, "exp_avg"), kept));
}

TEST_CASE("without any gradient a step does nothing") {
  const auto params = make_params({{4}}, 1);
  Adam adam(params);
  adam.zero_grad();
  const auto before = copies(params);
  auto step = compile([&] { adam.step(); });
  step();
  adam.step();
  CHECK(same_bits(params, before));
  CHECK(step.counters() == Counters{});
  CHECK(adam.steps() == 2);
}

TEST_CASE("another gradient tensor is noticed, other content needs no notice") {
  Twins twins;
  CHECK(twins.step());
  for (int i = 0; i < 2; ++i) {
    testing::Random random(i);
    const Tensor fresh = random_tensor(twins.params[0].shape(), random, 0.25);
    twins.params[0].set_grad(fresh);
    twins.twins[0].set_grad(fresh.clone());
    CHECK(twins.step());
    CHECK(twins.compiled.counters().uploads == 2 + i);
  }
  for (auto* list : {&twins.params, &twins.twins}) {
    (*list)[0].grad().fill_(0.5);
  }
  CHECK(twins.step());
  CHECK(twins.compiled.counters().uploads == 3);
  CHECK(twins.compiled.counters().compilations == 1);
}

TEST_CASE("zero_grad removes gradients or fills them with zeros") {
  for (const bool compiled : {false, true}) {
    for (const bool foreach : {true, false}) {
      CAPTURE(compiled);
      CAPTURE(foreach);
      auto params = make_params(mixed_shapes(5), 1);
      for (Tensor& more : make_params({{3}, {2}}, 2, DType::float64)) {
        params.push_back(more);
      }
      params[1].set_grad({});
      const auto twins = copies(params);
      const std::vector<Tensor> rest(params.begin() + 4, params.end());
      const std::vector<Tensor> start(params.begin(), params.begin() + 4);
      Adam adam({{start, {.foreach = foreach}}, {rest, {.foreach = foreach}}});
      Adam eager(twins);
      bool to_none = false;
      auto function = compile([&] {
        adam.step();
        adam.zero_grad(to_none);
      });
      const auto run = [&] {
        if (compiled) {
          function();
        } else {
          adam.step();
          adam.zero_grad(to_none);
        }
      };
      const std::vector<const void*> addresses = {params[0].grad().raw_data(),
                                                  params[6].grad().raw_data()};
      run();
      eager.step();
      CHECK(same_bits(params, twins));
      CHECK_FALSE(params[1].grad().defined());
      CHECK(params[0].grad().raw_data() == addresses[0]);
      CHECK(params[6].grad().raw_data() == addresses[1]);
      for (const Tensor& param : params) {
        if (!param.grad().defined()) continue;
        CHECK(same_bits(param.grad(), zeros_like(param)));
      }
      to_none = true;
      run();
      for (const Tensor& param : params) CHECK_FALSE(param.grad().defined());
      if (compiled) CHECK(function.counters().launches == 2);
    }
  }
}

TEST_CASE("zeroed gradients are seen by the next step in the same function") {
  const auto params = make_params({{4}}, 1);
  const auto twins = copies(params);
  Adam adam(params);
  Adam eager(twins);
  auto step = compile([&] {
    adam.step();
    adam.zero_grad(false);
    adam.step();
  });
  step();
  eager.step();
  eager.zero_grad(false);
  eager.step();
  CHECK(same_bits(params, twins));
  CHECK(adam.state(params[0], "step").item() == 2);
  CHECK(step.counters().launches == 1);
}

// ---- state ------------------------------------------------------------------

TEST_CASE("state is made at the first step and read by name") {
  const auto params = make_params({{4}, {}}, 1);
  Adam adam(params, {.amsgrad = true});
  CHECK_FALSE(adam.state(params[0], "step").defined());
  adam.step();
  for (const char* name : {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}) {
    const Tensor state = adam.state(params[0], name);
    REQUIRE(state.defined());
    CHECK(state.shape() == params[0].shape());
    CHECK(state.dtype() == params[0].dtype());
  }
  const Tensor step = adam.state(params[1], "step");
  CHECK(step.dim() == 0);
  CHECK(step.dtype() == DType::float64);
  CHECK(step.item() == 1);
  CHECK_FALSE(adam.state(params[0], "momentum_buffer").defined());
  CHECK_FALSE(adam.state(zeros({4}), "exp_avg").defined());
}

TEST_CASE("an option that needs more state may be switched on later") {
  Twins twins;
  CHECK(twins.step());
  const Tensor without = twins.params[2];
  without.impl()->grad = nullptr;
  twins.twins[2].set_grad({});
  for (Adam* adam : {&twins.adam, &twins.eager}) {
    adam->param_groups[0].options.amsgrad = true;
  }
  CHECK(twins.step());
  const Tensor largest = twins.adam.state(twins.params[0], "max_exp_avg_sq");
  CHECK(same_bits(largest, twins.adam.state(twins.params[0], "exp_avg_sq")));
  CHECK_FALSE(twins.adam.state(without, "max_exp_avg_sq").defined());
  CHECK(twins.adam.state(without, "step").item() == 1);
}

TEST_CASE("the lists of a group follow it") {
  Twins twins({}, 2);
  CHECK(twins.step());
  // Another tensor with the very same gradient.
  const auto replaced = make_params({{7}}, 3);
  for (Adam* adam : {&twins.adam, &twins.eager}) {
    Tensor& slot = adam->param_groups[0].params[0];
    const Tensor fresh = replaced[0].clone();
    Tensor handle = fresh;
    handle.set_grad(slot.grad());
    slot = fresh;
  }
  CHECK(twins.step());
  const Tensor fresh = twins.adam.param_groups[0].params[0];
  CHECK(same_bits(fresh, twins.eager.param_groups[0].params[0]));
  CHECK_FALSE(same_bits(fresh, replaced[0]));
  CHECK(twins.adam.state(fresh, "step").item() == 1);
  CHECK(twins.adam.state(twins.params[0], "step").item() == 1);

  // And one more.
  const auto added = make_params({{2, 2}}, 4);
  twins.adam.param_groups[0].params.push_back(added[0]);
  twins.compiled();
  CHECK(twins.adam.state(added[0], "step").item() == 1);
  CHECK(twins.adam.state(twins.params[1], "step").item() == 3);
  CHECK(twins.compiled.counters().compilations == 1);
}

namespace {

// A step from gradient 1 with momentum 0.9 makes 1, then 1.9, then 2.71.
struct Momentum {
  explicit Momentum(bool compiles) : compiled(compiles) {
    for (Tensor param : params) param.set_grad(full({3}, 1));
  }
  void step() {
    if (compiled) {
      fused();
    } else {
      sgd.step();
    }
  }
  double momentum(std::size_t i) const {
    return sgd.state(params[i], "momentum_buffer").to_vector()[0];
  }
  bool compiled;
  std::vector<Tensor> params = {zeros({3}), zeros({3})};
  SGDOptions options = {.lr = 0.5, .momentum = 0.9};
  SGD sgd{{{{params[0]}, options}, {{params[1]}, options}}};
  struct Step {
    SGD* sgd;
    void operator()() const { sgd->step(); }
  };
  Compiled<Step> fused = compile(Step{&sgd});
};

}  // namespace

TEST_CASE("state belongs to the parameter, not to its place in a group") {
  using Groups = std::vector<SGD::Group>;
  struct Row {
    const char* label;
    void (*change)(Groups& groups);
    std::size_t kept;  // whose momentum must go on
  };
  const Row rows[] = {
      {"the first group goes",
       [](Groups& groups) { groups.erase(groups.begin()); }, 1},
      {"groups change places",
       [](Groups& groups) { std::swap(groups[0], groups[1]); }, 0},
      {"a parameter moves to another group",
       [](Groups& groups) {
         groups[1].params.push_back(groups[0].params[0]);
         groups[0].params.clear();
       },
       0},
      {"a parameter moves to a new group",
       [](Groups& groups) {
         groups.push_back(groups[0]);
         groups[0].params.clear();
       },
       0},
      {"parameters change places",
       [](Groups& groups) { std::swap(groups[0].params, groups[1].params); },
       1},
  };
  for (const bool compiled : {false, true}) {
    for (const Row& row : rows) {
      CAPTURE(compiled);
      CAPTURE(row.label);
      Momentum run(compiled);
      run.step();
      run.step();
      CHECK(run.momentum(row.kept) == doctest::Approx(1.9));
      row.change(run.sgd.param_groups);
      run.step();
      CHECK(run.momentum(row.kept) == doctest::Approx(2.71));
      CHECK(run.sgd.state(run.params[row.kept], "step").item() == 3);
    }
  }
}

TEST_CASE("a parameter that comes back has what it had") {
  for (const bool compiled : {false, true}) {
    CAPTURE(compiled);
    Momentum run(compiled);
    run.step();
    const auto group = run.sgd.param_groups[0];
    run.sgd.param_groups.erase(run.sgd.param_groups.begin());
    run.step();
    CHECK(run.momentum(0) == 1);
    CHECK(run.momentum(1) == doctest::Approx(1.9));
    run.sgd.param_groups.push_back(group);
    run.step();
    CHECK(run.momentum(0) == doctest::Approx(1.9));
    CHECK(run.momentum(1) == doctest::Approx(2.71));
  }
}

TEST_CASE("what nobody can bring back is forgotten") {
  Momentum run(false);
  run.step();
  const std::weak_ptr<TensorImpl> gone = run.params[0].impl();
  run.params.erase(run.params.begin());
  run.sgd.param_groups.erase(run.sgd.param_groups.begin());
  run.step();
  CHECK(gone.expired());
  CHECK(run.momentum(0) == doctest::Approx(1.9));
}

TEST_CASE("groups may be changed in any way between two steps") {
  for (const bool compiled : {false, true}) {
    CAPTURE(compiled);
    Momentum run(compiled);
    auto& groups = run.sgd.param_groups;
    Tensor added = zeros({2});
    added.set_grad(full({2}, 1));
    groups.emplace_back(std::vector<Tensor>{added}, run.options);
    run.step();
    CHECK(run.sgd.state(added, "step").item() == 1);
    groups.emplace_back(std::vector<Tensor>{});
    groups[0].params.clear();
    run.step();
    CHECK(run.momentum(0) == 1);
    CHECK(run.momentum(1) == doctest::Approx(1.9));

    // What makes no sense is an error that says so, and the next step is fine.
    const auto message = [&] {
      return testing::message_of<Error>([&] { run.step(); });
    };
    groups[0].params = {run.params[1]};
    CHECK(message().starts_with(
        "optimizer: parameter 0 of group 1 is the same tensor as parameter 0 "
        "of group 0, at "));
    groups[0].params = {Tensor()};
    CHECK(message().starts_with(
        "optimizer: parameter 0 of group 0 is an undefined tensor, at "));
    run.sgd.zero_grad(false);
    CHECK(added.grad().to_vector() == std::vector<double>{0, 0});
    groups.clear();
    run.step();
    CHECK(run.sgd.parameters().empty());
    groups.emplace_back(run.params, run.options);
    run.params[1].grad().fill_(1);
    run.step();
    CHECK(run.momentum(1) == doctest::Approx(2.71));
  }
}

TEST_CASE("a group that is not there is an error") {
  Momentum run(false);
  const auto is_refused = [](const auto& call) {
    const std::string message = testing::message_of<Error>(call);
    CHECK(message.starts_with("SGD: parameter group 9 is out of range, at "));
    CHECK(message.ends_with("; group_count() is 2"));
  };
  is_refused([&] { run.sgd.group(9); });
  const Optimizer& constant = run.sgd;
  is_refused([&] { constant.group(9); });
}

TEST_CASE("lists stay the same objects while nothing about them changes") {
  const auto params = make_params({{4}, {5}}, 1);
  Adam adam(params);
  StateStore store;
  GroupBatches cache;
  const StateSpec specs[] = {{"exp_avg"}};
  const GroupToUpdate group = {&adam.group(0), specs};
  const std::span groups(&group, 1);
  const GroupBatches::Try never = [](const JoinedBatch&) { return false; };
  using What = GroupBatches::Change;
  const auto change = [&] { return cache.refresh(groups, store, {}, never); };
  CHECK(change() == What::params);
  cache.rebuild(groups, store, {}, never);
  CHECK(change() == What::nothing);
  Batch before = cache.batches()[0].batch;
  const ListImpl* const gradients = before.grads.impl().get();
  const std::uint64_t id = gradients->id;

  Tensor second = params[1];
  second.set_grad(full({5}, 3));
  // Somebody looks at the old list, which stays what it was.
  CHECK(change() == What::nothing);
  CHECK(before.grads.impl().get() == gradients);
  CHECK(gradients->id == id);
  const Batch& after = cache.batches()[0].batch;
  CHECK(after.params.impl() == before.params.impl());
  CHECK(after.steps.impl() == before.steps.impl());
  CHECK(after.states[0].impl() == before.states[0].impl());
  CHECK(after.grads.impl() != before.grads.impl());
  CHECK(after.grads[0].impl() == params[0].grad().impl());
  CHECK(after.grads[1].impl() == second.grad().impl());

  // Nobody does: it is put elsewhere.
  before = {};
  const ListImpl* const own = after.grads.impl().get();
  second.set_grad(full({5}, 4));
  CHECK(change() == What::nothing);
  CHECK(cache.batches()[0].batch.grads.impl().get() == own);
  CHECK(own->addresses[1] == second.grad().raw_data());

  second.set_grad({});
  CHECK(change() == What::batches);
  cache.rebuild(groups, store, {}, never);
  CHECK(cache.batches()[0].batch.params.size() == 1);
}

TEST_CASE("a tensor that takes the place of a dropped one starts afresh") {
  auto params = make_params({{4}}, 1);
  Adam adam(params);
  adam.step();
  adam.step();
  for (int i = 0; i < 20; ++i) {
    // Whatever address the new tensor gets, nothing was learnt for it.
    adam.param_groups[0].params[0] = Tensor();
    params.clear();
    params = make_params({{4}}, i);
    adam.param_groups[0].params[0] = params[0];
    adam.step();
    CHECK(adam.state(params[0], "step").item() == 1);
  }
}
