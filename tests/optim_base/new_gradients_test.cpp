// The loop of everybody: gradients are new tensors in each step.
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/optim/all.h"
#include "fusebook/runtime/parallel.h"
#include "fusebook/support/error.h"
#include "support/step_testing.h"
#include "support/testing.h"

using namespace fuse;
using testing::Random;

namespace {

Tensor random_like(const Tensor& model, Random& random) {
  Tensor tensor = empty_like(model);
  const Tensor flat = empty({model.numel()}, DType::float32);
  auto* const data = static_cast<float*>(flat.raw_data());
  for (std::int64_t i = 0; i < model.numel(); ++i) {
    data[i] = float(random.uniform(-1, 1));
  }
  tensor.copy_(flat.view(model.shape()));
  return tensor;
}

// Two models with the same numbers, one updated eagerly, one compiled. Their
// gradients are given alike.
class Pair {
 public:
  explicit Pair(const CompileOptions& options = {.fullgraph = true},
                bool transposed = false)
      : params_(make(transposed)),
        eager_params_(make(transposed)),
        adam(params_, {.lr = 0.01, .weight_decay = 0.1}),
        eager(eager_params_, {.lr = 0.01, .weight_decay = 0.1}),
        step(compile(std::function<void()>([this] { adam.step(); }), options)) {
    for (std::size_t i = 0; i < count(); ++i) give(i);
  }

  std::size_t count() const { return params_.size(); }
  // A new tensor in new memory, or in memory that was just freed.
  void give(std::size_t i) {
    const Tensor grad = random_like(params_[i], random);
    params_[i].set_grad(grad);
    eager_params_[i].set_grad(grad.clone());
  }
  void give(std::size_t i, const Tensor& grad) {
    params_[i].set_grad(grad);
    eager_params_[i].set_grad(grad);
  }
  void take(std::size_t i) {
    params_[i].set_grad({});
    eager_params_[i].set_grad({});
  }
  Tensor& param(std::size_t i) { return params_[i]; }

  void run() {
    step();
    eager.step();
    for (std::size_t i = 0; i < count(); ++i) {
      CAPTURE(i);
      REQUIRE(bitwise_equal(params_[i], eager_params_[i]));
    }
  }

  Random random{1};

 private:
  static std::vector<Tensor> make(bool transposed) {
    Random numbers(7);
    std::vector<Tensor> params;
    for (const Shape& shape :
         std::vector<Shape>{{3, 5}, {70}, {}, {2, 0}, {40, 40}, {1}, {9, 4}}) {
      Tensor param = random_like(zeros(shape), numbers);
      if (transposed && shape.size() == 2) {
        param = random_like(zeros({shape[1], shape[0]}), numbers).t();
      }
      params.push_back(param);
    }
    return params;
  }

  std::vector<Tensor> params_;
  std::vector<Tensor> eager_params_;

 public:
  Adam adam;
  Adam eager;
  Compiled<std::function<void()>> step;
};

const std::vector<Backend> backends = {Backend::compiled, Backend::interpreted,
                                       Backend::simulated};

}  // namespace

TEST_CASE("new gradients: one launch a step, no recompile, eager's bits") {
  for (const Backend backend : backends) {
    for (const bool transposed : {false, true}) {
      for (const int threads : {1, 2, 8}) {
        set_thread_count(threads);
        Pair pair({.fullgraph = true, .backend = backend}, transposed);
        pair.run();
        std::vector<Tensor> old;  // so that none gets the memory of another
        for (int i = 0; i < 12; ++i) {
          const std::int64_t before = pair.step.counters().uploads;
          for (std::size_t k = 0; k < pair.count(); ++k) {
            old.push_back(pair.param(k).grad());
            pair.give(k);
          }
          pair.run();
          CHECK(pair.step.counters().uploads == before + 1);
        }
        CHECK(pair.step.counters().launches == 13);
        CHECK(pair.step.counters().compilations == 1);
        CHECK(pair.step.counters().graph_breaks == 0);
      }
    }
  }
  set_thread_count(0);
}

TEST_CASE("one new gradient, anywhere") {
  for (const Backend backend : backends) {
    Pair pair({.fullgraph = true, .backend = backend});
    for (int i = 0; i < 40; ++i) {
      pair.give(std::size_t(pair.random.below(int(pair.count()))));
      pair.run();
    }
    CHECK(pair.step.counters().launches == 40);
    CHECK(pair.step.counters().compilations == 1);
  }
}

TEST_CASE(
    "zero_grad drops gradients, and memory that is used again is none new") {
  Pair pair;
  pair.run();
  const std::weak_ptr<TensorImpl> gradient = pair.param(4).grad().impl();
  const void* const address = pair.param(4).grad().raw_data();
  pair.adam.zero_grad();
  // Neither the optimizer nor the compiled step keeps it.
  CHECK(gradient.expired());
  pair.eager.zero_grad();
  const std::int64_t uploads = pair.step.counters().uploads;
  bool same = true;
  for (std::size_t k = 0; k < pair.count(); ++k) {
    const Tensor grad = random_like(pair.param(k), pair.random);
    same = same && (k != 4 || grad.raw_data() == address);
    pair.give(k, grad);
  }
  pair.run();
  CHECK(pair.step.counters().uploads <= uploads + 1);
  // The same memory in other tensors: nothing has changed for the kernel.
  const std::int64_t before = pair.step.counters().uploads;
  for (std::size_t k = 0; k < pair.count(); ++k) {
    const Tensor grad = pair.param(k).grad();
    pair.give(k, grad.view(grad.shape()));
  }
  pair.run();
  CHECK(pair.step.counters().uploads == before);
  CHECK(pair.step.counters().compilations == 1);
}

TEST_CASE("two sets of gradients in turn cost no table after a few steps") {
  for (const Backend backend : backends) {
    Pair pair({.fullgraph = true, .backend = backend});
    std::array<std::vector<Tensor>, 2> sets;
    for (auto& set : sets) {
      for (std::size_t k = 0; k < pair.count(); ++k) {
        set.push_back(random_like(pair.param(k), pair.random));
      }
    }
    const auto use = [&](int which) {
      for (std::size_t k = 0; k < pair.count(); ++k) {
        pair.give(k, sets[std::size_t(which)][k]);
      }
      pair.run();
    };
    for (int i = 0; i < 6; ++i) use(i % 2);
    const std::int64_t uploads = pair.step.counters().uploads;
    for (int i = 0; i < 20; ++i) use(i % 2);
    CHECK(pair.step.counters().uploads == uploads);
    CHECK(pair.step.counters().launches == 26);
  }
}

TEST_CASE("gradients in memory of others, at new addresses each time") {
  for (const Backend backend : backends) {
    Pair pair({.fullgraph = true, .backend = backend});
    std::vector<float> memory(200000, 0.25F);
    for (int i = 0; i < 30; ++i) {
      float* next = memory.data() + std::size_t(i) * 37;
      for (std::size_t k = 0; k < pair.count(); ++k) {
        pair.give(k, from_blob(next, pair.param(k).shape()));
        next += pair.param(k).numel() + 3;
      }
      pair.run();
    }
    CHECK(pair.step.counters().launches == 30);
    CHECK(pair.step.counters().compilations == 1);
  }
}

TEST_CASE("gradients that are missing in some steps") {
  Pair pair(CompileOptions{});
  for (int i = 0; i < 60; ++i) {
    for (std::size_t k = 0; k < pair.count(); ++k) {
      if (pair.random.chance(0.1)) pair.take(k);
      if (pair.random.chance(0.3)) pair.give(k);
    }
    pair.run();
  }
}

TEST_CASE("a gradient of other strides than before") {
  Pair pair(CompileOptions{});
  pair.run();
  for (int i = 0; i < 4; ++i) {
    pair.give(0, random_like(zeros({5, 3}), pair.random).t());
    pair.run();
    pair.give(0);
    pair.run();
  }
}

// Eager and compiled could both take them for others.
TEST_CASE("each element gets its own gradient, whatever its strides") {
  const Tensor columns = tensor({1, 2, 3, 4, 5, 6}).view({3, 2});
  const Tensor rows = tensor({10, 20, 30, 40, 50, 60}).view({2, 3});
  const std::vector<double> of_columns = {1, 3, 5, 2, 4, 6};
  for (const bool compiled : {false, true}) {
    Tensor param = zeros({2, 3});
    SGD sgd({param}, {.lr = 1.0});
    auto step = compile([&] { sgd.step(); });
    std::vector<double> expected(6, 0);
    for (int i = 0; i < 6; ++i) {
      const bool transposed = i % 2 == 1;
      param.set_grad(transposed ? columns.clone().t() : rows.clone());
      compiled ? step() : sgd.step();
      for (std::size_t k = 0; k < expected.size(); ++k) {
        expected[k] -= transposed ? of_columns[k] : 10 * double(k + 1);
      }
      CHECK(param.to_vector() == expected);
    }
  }
}

TEST_CASE(
    "a new gradient that lies in a parameter breaks the graph, until it "
    "moves") {
  Pair pair;
  pair.run();
  const Tensor good = pair.param(1).grad();
  pair.param(1).set_grad(pair.param(4).view({1600}).narrow(0, 20, 70));
  for (int i = 0; i < 2; ++i) {
    const std::string message =
        testing::message_of<Error>([&] { pair.step(); });
    CHECK(testing::contains(message, "graph break in function step"));
    CHECK(testing::contains(message, "params[4] is stored at "));
    CHECK(testing::contains(message, " and overlaps grads[1], read at "));
  }
  pair.param(1).set_grad(good);
  pair.eager.step();
  pair.step();
  CHECK(pair.step.counters().launches == 2);
}

TEST_CASE("gradients dropped inside of the compiled function are still read") {
  for (const Backend backend : backends) {
    Pair pair;
    auto step = compile(
        [&] {
          pair.adam.step();
          pair.adam.zero_grad();
          // Would get memory that was freed by now.
          for (std::size_t k = 0; k < pair.count(); ++k) {
            const Tensor other = empty_like(pair.param(k));
            std::memset(other.raw_data(), 0x7f, std::size_t(other.nbytes()));
          }
        },
        {.fullgraph = true, .backend = backend});
    for (int i = 0; i < 10; ++i) {
      step();
      pair.eager.step();
      for (std::size_t k = 0; k < pair.count(); ++k) {
        REQUIRE_FALSE(pair.param(k).grad().defined());
        pair.give(k);
      }
    }
    pair.run();
    CHECK(step.counters().launches == 10);
  }
}

TEST_CASE("two steps in one function with new gradients in between") {
  Pair pair;
  std::vector<Tensor> later;
  for (std::size_t k = 0; k < pair.count(); ++k) {
    later.push_back(random_like(pair.param(k), pair.random));
  }
  const std::vector<Tensor> first = [&] {
    std::vector<Tensor> grads;
    for (std::size_t k = 0; k < pair.count(); ++k) {
      grads.push_back(pair.param(k).grad());
    }
    return grads;
  }();
  auto both = compile(
      [&] {
        pair.adam.step();
        for (std::size_t k = 0; k < pair.count(); ++k) {
          pair.param(k).set_grad(later[k]);
        }
        pair.adam.step();
      },
      {.fullgraph = true});
  both();
  pair.eager.step();
  for (std::size_t k = 0; k < pair.count(); ++k) pair.give(k, later[k]);
  pair.eager.step();
  pair.run();
  CHECK(both.counters().launches == 1);
}

TEST_CASE("lists made anew in each call, over new memory") {
  Random random(3);
  auto params = step_testing::make_params({{4}, {50}, {3, 3}}, 1);
  std::vector<Tensor> expected;
  for (const Tensor& param : params) expected.push_back(param.clone());
  std::vector<Tensor> grads;
  auto step = compile(
      [&] { foreach_add_scaled_(TensorList(params), TensorList(grads), -0.5); },
      {.fullgraph = true});
  for (int i = 0; i < 20; ++i) {
    grads.clear();
    for (const Tensor& param : params) {
      grads.push_back(random_like(param, random));
    }
    step();
    foreach_add_scaled_(TensorList(expected), TensorList(grads), -0.5);
    for (std::size_t k = 0; k < params.size(); ++k) {
      REQUIRE(bitwise_equal(params[k], expected[k]));
    }
  }
  CHECK(step.counters().launches == 20);
  CHECK(step.counters().compilations == 1);
}

TEST_CASE("a list over addresses alone is put elsewhere") {
  const std::vector<std::int64_t> sizes = {5, 0, 7};
  for (const Backend backend : backends) {
    std::vector<Tensor> params;
    for (const std::int64_t n : sizes) params.push_back(zeros({n}));
    std::vector<std::vector<float>> memory(6, std::vector<float>(7, 1));
    const auto addresses = [&](std::size_t from) {
      return std::vector<void*>{memory[from].data(), nullptr,
                                memory[from + 1].data()};
    };
    for (std::size_t m = 0; m < memory.size(); ++m) {
      memory[m].assign(7, float(m + 1));
    }
    const TensorList targets(params);
    const TensorList grads =
        TensorList::from_blob(addresses(0), targets, "grads");
    CHECK(grads[2].to_vector() == std::vector<double>(7, 2));
    auto step = compile([&] { foreach_add_(targets, grads); },
                        {.fullgraph = true, .backend = backend});
    step();
    grads.rebind(addresses(2));
    CHECK(grads[2].to_vector() == std::vector<double>(7, 4));
    step();
    grads.rebind(addresses(4));
    step();
    CHECK(params[0].to_vector() == std::vector<double>(5, 1 + 3 + 5));
    CHECK(params[2].to_vector() == std::vector<double>(7, 2 + 4 + 6));
    CHECK(step.counters().launches == 3);
    CHECK(step.counters().compilations == 1);
    grads.rebind(addresses(4));
    step();
    CHECK(step.counters().uploads == 3);
  }
}

TEST_CASE("what a list over addresses refuses") {
  const TensorList model({zeros({2}), zeros({0})}, "model");
  std::array<float, 4> memory{};
  const std::vector<void*> good = {memory.data(), nullptr};
  const auto error = [](auto action) {
    return testing::message_of<Error>(action);
  };
  CHECK(error([&] {
          TensorList::from_blob(std::span(good).first(1), model);
        }) == "rebind: expected 2 addresses, one per tensor, but got 1");
  const std::vector<void*> null = {nullptr, nullptr};
  const TensorList list = TensorList::from_blob(good, model, "grads");
  CHECK(error([&] { list.rebind(null); }) ==
        "rebind: the address of grads[0] is null");
  CHECK(error([&] { model.rebind(good); }) ==
        "rebind: this list holds its tensors; only one made with "
        "TensorList::from_blob can be rebound");
  // What was recorded with the old addresses runs first.
  std::array<float, 2> other = {5, 5};
  memory[0] = 1;
  const TensorList sum({zeros({2}), zeros({0})});
  auto step = compile([&] {
    foreach_add_(sum, list);
    list.rebind(std::vector<void*>{other.data(), nullptr});
    foreach_add_(sum, list);
  });
  step();
  CHECK(sum[0].to_vector() == std::vector<double>{6, 5});
  CHECK(step.counters().graph_breaks == 1);
}
