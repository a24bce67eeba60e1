// Parameters that take part in some steps only: the lists of earlier steps are
// found again.
#include "fusebook/optim_base/recent_batches.h"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/optim/all.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;

namespace {

using Found = RecentBatches::Change;

constexpr std::size_t count = 6;

Tensor ones(double value = 1) { return full({3}, value, DType::float64); }

// Six parameters, of which some have a gradient.
struct Model {
  Model() {
    for (std::size_t i = 0; i < count; ++i) {
      params.push_back(ones(double(i)));
    }
  }
  // Bit i says whether parameter i has one, a new one each time.
  void use(unsigned set) {
    for (std::size_t i = 0; i < count; ++i) {
      const bool has = (set >> i & 1U) != 0;
      params[i].set_grad(has ? ones(0.5 + double(i)) : Tensor());
    }
  }
  // Those that it has are kept.
  void use_kept(unsigned set) {
    if (grads.empty()) {
      for (std::size_t i = 0; i < count; ++i) grads.push_back(ones(2));
    }
    for (std::size_t i = 0; i < count; ++i) {
      const bool has = (set >> i & 1U) != 0;
      params[i].set_grad(has ? grads[i] : Tensor());
    }
  }
  std::vector<Tensor> params;
  std::vector<Tensor> grads;
};

// What an optimizer does of it.
struct Batches {
  explicit Batches(const Model& model) : adam(model.params) { refresh(); }
  std::vector<GroupToUpdate> groups() {
    return {{adam.param_groups.data(), specs}};
  }
  Found refresh() {
    const auto all = groups();
    const auto never = [](const JoinedBatch&) { return false; };
    const Found change = recent.refresh(all, store, {}, never);
    if (change != Found::nothing) recent.rebuild(all, store, {}, never);
    return change;
  }
  static constexpr StateSpec specs[] = {{"exp_avg"}};
  Adam adam;
  StateStore store;
  RecentBatches recent;
};

}  // namespace

TEST_CASE("sets of gradients that take turns find their lists") {
  Model model;
  model.use(63);
  Batches batches(model);
  const ListImpl* const all =
      batches.recent.batches()[0].batch.params.impl().get();
  model.use(9);
  CHECK(batches.refresh() == Found::batches);
  const ListImpl* const some =
      batches.recent.batches()[0].batch.params.impl().get();
  CHECK(batches.recent.updated(0) == 2);
  for (int i = 0; i < 3; ++i) {
    model.use(63);
    CHECK(batches.refresh() == Found::nothing);
    CHECK(batches.recent.batches()[0].batch.params.impl().get() == all);
    CHECK(batches.recent.updated(0) == count);
    model.use(9);
    CHECK(batches.refresh() == Found::nothing);
    const Batch& batch = batches.recent.batches()[0].batch;
    CHECK(batch.params.impl().get() == some);
    CHECK(batch.params[1].impl() == model.params[3].impl());
    CHECK(batch.grads[1].impl() == model.params[3].grad().impl());
    CHECK(batches.recent.updated(0) == 2);
  }
}

TEST_CASE("so many sets are kept, and no more") {
  Model model;
  model.use(63);
  Batches batches(model);
  const auto made = [&](unsigned sets) {
    int changes = 0;
    for (int round = 0; round < 3; ++round) {
      for (unsigned set = 1; set <= sets; ++set) {
        model.use(set);
        changes += int(batches.refresh() != Found::nothing);
      }
    }
    return changes;
  };
  CHECK(made(RecentBatches::most_kept) == RecentBatches::most_kept);
  CHECK(made(RecentBatches::most_kept + 1) > 2 * RecentBatches::most_kept);
}

TEST_CASE("nothing is kept of parameters that have gone") {
  Model model;
  model.use(63);
  Batches batches(model);
  model.use(3);
  batches.refresh();
  const std::weak_ptr<TensorImpl> last = model.params.back().impl();
  batches.adam.param_groups[0].params.pop_back();
  model.params.back() = ones();
  CHECK(batches.refresh() == Found::params);
  batches.store.drop_unreachable();
  CHECK(last.expired());
  model.use(31);
  CHECK(batches.refresh() == Found::batches);
}

TEST_CASE("steps in which some take part: plain arithmetic, one launch each") {
  for (const std::size_t groups : {1, 2}) {
    for (const bool kept : {false, true}) {
      Model model;
      model.use(63);
      std::vector<SGD::Group> all;
      for (std::size_t g = 0; g < groups; ++g) {
        const std::size_t size = count / groups;
        const auto begin = model.params.begin() + std::ptrdiff_t(g * size);
        const std::vector<Tensor> own(begin, begin + std::ptrdiff_t(size));
        all.emplace_back(own, SGDOptions{.lr = 0.25, .momentum = 0.5});
      }
      SGD sgd(all);
      auto step = compile([&] { sgd.step(); });
      std::vector<double> values{0, 1, 2, 3, 4, 5};
      std::vector<double> momentum(count, 0);
      std::vector<bool> begun(count, false);
      const auto turn = [&](unsigned set) {
        kept ? model.use_kept(set) : model.use(set);
        step();
        for (std::size_t i = 0; i < count; ++i) {
          if ((set >> i & 1U) == 0) continue;
          const double gradient = kept ? 2 : 0.5 + double(i);
          momentum[i] = begun[i] ? momentum[i] * 0.5 + gradient : gradient;
          begun[i] = true;
          values[i] -= 0.25 * momentum[i];
        }
        for (std::size_t i = 0; i < count; ++i) {
          REQUIRE(model.params[i].to_vector()[0] == values[i]);
        }
      };
      CAPTURE(groups);
      CAPTURE(kept);
      const unsigned sets[] = {63, 21, 42};
      for (int i = 0; i < 6; ++i) turn(sets[i % 3]);
      const Counters before = step.counters();
      for (int i = 0; i < 9; ++i) turn(sets[i % 3]);
      const Counters more = step.counters() - before;
      CHECK(more.launches == 9);
      CHECK(more.compilations == 0);
      CHECK(more.uploads == (kept ? 0 : 9));
    }
  }
}

TEST_CASE("numbers that moved while other groups took part are the new ones") {
  std::vector<SGD::Group> groups;
  std::vector<Tensor> params;
  for (std::size_t g = 0; g < 20; ++g) {
    params.push_back(ones(1));
    groups.push_back({{params.back()}, {.lr = 0.5}});
  }
  SGD sgd(groups);
  auto step = compile([&] { sgd.step(); });
  std::vector<double> values(20, 1);
  std::vector<double> rates(20, 0.5);
  for (int i = 0; i < 12; ++i) {
    const std::size_t used = i % 2 == 0 ? 20 : 12;
    for (std::size_t g = 0; g < 20; ++g) {
      params[g].set_grad(g < used ? ones(1) : Tensor());
    }
    const std::size_t moves = std::size_t(i) * 5 % 20;
    sgd.param_groups[moves].options.lr = rates[moves] = 0.125 * double(i + 1);
    step();
    for (std::size_t g = 0; g < 20; ++g) {
      if (g < used) values[g] -= rates[g];
      REQUIRE(params[g].to_vector()[0] == values[g]);
    }
  }
  CHECK(step.counters().launches == 12);
}
