#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>
#include <tuple>
#include <utility>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/device/allocator.h"
#include "fusebook/foreach/foreach_map.h"
#include "fusebook/lr_scheduler/all.h"
#include "fusebook/optim/all.h"
#include "fusebook/runtime/parallel.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;

namespace {

std::atomic<long> news = 0;

void* counted(std::size_t bytes, std::size_t alignment) {
  ++news;
  const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
  void* const memory = std::aligned_alloc(alignment, whole);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// Not inlined: at -O1 the compiler inlines delete but not new, and would warn
// of memory that another function than free's own counterpart gave.
[[gnu::noinline]] void give_back(void* memory) { std::free(memory); }

}  // namespace

// Every form of new and delete that is not replaced here calls one of these; the
// sanitizers' own form without exceptions does not.
void* operator new(std::size_t bytes) {
  return counted(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new(std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  try {
    return counted(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, std::size_t(alignment));
}
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  give_back(memory);
}

namespace {

// What steps ask of operator new and of the tensors' allocator, the cache of
// the latter included.
struct Asked {
  long news = 0;
  std::int64_t tensors = 0;
  bool operator==(const Asked&) const = default;
};

std::int64_t tensor_allocations() {
  const AllocatorStatistics now = allocator_statistics();
  return now.system_allocations + now.cache_hits;
}

Asked asked_by(const std::function<void()>& step, int times) {
  const long before = news;
  const std::int64_t tensors = tensor_allocations();
  for (int i = 0; i < times; ++i) step();
  return {news - before, tensor_allocations() - tensors};
}

// A model whose second step needs nothing new: rates that move included.
struct Training {
  explicit Training(std::size_t tensors)
      : params(make_params(mixed_shapes(tensors), 1)),
        adam(params, {.lr = Scalar(tensor(0.01)), .weight_decay = 0.1}),
        linear(adam, {.total_iters = 1000}),
        restarts(adam, {.T_0 = 7}) {}

  std::vector<Tensor> params;
  Adam adam;
  LinearLR linear;
  CosineAnnealingWarmRestarts restarts;
};

void check_nothing_asked(Backend backend, int threads) {
  set_thread_count(threads);
  for (const std::size_t tensors : {std::size_t(1), std::size_t(300)}) {
    CAPTURE(tensors);
    Training training(tensors);
    auto step = compile(
        [&] {
          training.adam.step();
          training.linear.step();
          training.restarts.step();
        },
        {.fullgraph = true, .backend = backend});
    step();
    CHECK(asked_by([&] { step(); }, 50) == Asked{});
    CHECK(step.counters().launches == 51);
    CHECK(step.counters().uploads == 1);
  }
  set_thread_count(0);
}

}  // namespace

TEST_CASE("the counters see what is asked") {
  std::vector<int>* kept = nullptr;
  const Asked asked = asked_by(
      [&] {
        kept = new std::vector<int>(3);
        delete kept;
        static_cast<void>(zeros({5}));
      },
      1);
  CHECK(asked.news >= 2);
  CHECK(asked.tensors == 1);
}

TEST_CASE("after the first call a compiled step asks for no memory") {
  for (const int threads : {1, 2, 5}) {
    CAPTURE(threads);
    check_nothing_asked(Backend::compiled, threads);
  }
}

TEST_CASE("nor does an interpreted one") {
  for (const int threads : {1, 2, 5}) {
    CAPTURE(threads);
    check_nothing_asked(Backend::interpreted, threads);
  }
}

TEST_CASE("nor does one whose gradients are new tensors each time") {
  for (const Backend backend : {Backend::compiled, Backend::interpreted}) {
    Training training(300);
    auto step = compile([&] { training.adam.step(); },
                        {.fullgraph = true, .backend = backend});
    std::vector<std::vector<Tensor>> sets(30);
    for (auto& set : sets) {
      for (const Tensor& param : training.params) {
        set.push_back(zeros_like(param));
      }
    }
    std::size_t next = 0;
    const auto loop = [&] {
      for (std::size_t i = 0; i < training.params.size(); ++i) {
        training.params[i].set_grad(sets[next][i]);
      }
      ++next;
      step();
    };
    for (int i = 0; i < 3; ++i) loop();  // what is stored is sorted once
    CHECK(asked_by(loop, 27) == Asked{});
    CHECK(step.counters().launches == 30);
    CHECK(step.counters().uploads == 30);
    CHECK(step.counters().compilations == 1);
  }
}

TEST_CASE("nor does one in which some parameters take part in turns") {
  for (const Backend backend : {Backend::compiled, Backend::interpreted}) {
    Training training(300);
    auto step = compile([&] { training.adam.step(); },
                        {.fullgraph = true, .backend = backend});
    std::vector<std::vector<Tensor>> sets(40);
    for (auto& set : sets) {
      for (const Tensor& param : training.params) {
        set.push_back(zeros_like(param));
      }
    }
    std::size_t next = 0;
    const auto loop = [&] {
      for (std::size_t i = 0; i < training.params.size(); ++i) {
        const bool has = next % 3 == 0 || i % 3 == next % 3;
        training.params[i].set_grad(has ? sets[next][i] : Tensor());
      }
      ++next;
      step();
    };
    for (int i = 0; i < 12; ++i) loop();
    CHECK(asked_by(loop, 28) == Asked{});
    CHECK(step.counters().launches == 40);
    CHECK(step.counters().compilations == 1);
  }
}

TEST_CASE("nor does one whose gradients are addresses, new each time") {
  for (const Backend backend : {Backend::compiled, Backend::interpreted}) {
    Training training(300);
    std::vector<float> memory(200000);
    std::vector<const void*> addresses(training.params.size());
    auto step = compile([&] { training.adam.step({.grads = addresses}); },
                        {.fullgraph = true, .backend = backend});
    std::size_t steps = 0;
    const auto loop = [&] {
      const float* next = memory.data() + ++steps;
      for (std::size_t i = 0; i < addresses.size(); ++i) {
        addresses[i] = next;
        next += training.params[i].numel();
      }
      step();
    };
    for (int i = 0; i < 3; ++i) loop();  // what is stored is sorted once
    CHECK(asked_by(loop, 27) == Asked{});
    CHECK(step.counters().launches == 30);
    CHECK(step.counters().uploads == 30);
    CHECK(step.counters().compilations == 1);
  }
}

TEST_CASE("nor does one over memory of others that moves") {
  Training training(50);
  const TensorList params(training.params);
  std::vector<float> memory(50000);
  std::vector<void*> addresses(params.size());
  const auto move = [&](std::size_t to) {
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      addresses[i] = memory.data() + to;
      to += std::size_t(params[i].numel());
    }
  };
  move(0);
  const TensorList grads = TensorList::from_blob(addresses, params);
  auto step =
      compile([&] { foreach_add_(params, grads); }, {.fullgraph = true});
  std::size_t next = 0;
  const auto loop = [&] {
    move(++next);
    grads.rebind(addresses);
    step();
  };
  for (int i = 0; i < 3; ++i) loop();
  CHECK(asked_by(loop, 20) == Asked{});
  CHECK(step.counters().launches == 23);
}

TEST_CASE("every optimizer's step asks for nothing") {
  const auto params = make_params(mixed_shapes(20), 2);
  Adagrad adagrad(params);
  Adadelta adadelta(params);
  NAdam nadam(params);
  RAdam radam(params);
  RMSprop rmsprop(params, {.momentum = 0.9, .centered = true});
  SGD sgd(params, {.momentum = 0.9, .nesterov = true});
  for (Optimizer* const one : std::vector<Optimizer*>{
           &adagrad, &adadelta, &nadam, &radam, &rmsprop, &sgd}) {
    auto step = compile([&] { one->step(); });
    step();
    step();  // numbers that only the first step has, such as SGD's
    CHECK(asked_by([&] { step(); }, 20) == Asked{});
  }
}

// The form that jax and foreach_map recipes have: new lists, copied back.
TEST_CASE("a functional step asks for nothing, temporaries included") {
  for (const Backend backend : {Backend::compiled, Backend::interpreted}) {
    auto params = make_params(mixed_shapes(40), 3);
    std::vector<Tensor> grads;
    std::vector<Tensor> averages;
    for (const Tensor& param : params) {
      grads.push_back(param.grad());
      averages.push_back(zeros_like(param));
    }
    const TensorList p(params);
    const TensorList g(grads);
    const TensorList m(averages);
    auto step = compile(
        [&] {
          const TensorList next = foreach_lerp(m, g, 0.1);
          const TensorList updates = foreach_div(
              next, foreach_add(foreach_sqrt(foreach_mul(g, g)), 1e-8));
          foreach_copy_(p, foreach_sub(p, foreach_mul(updates, 0.01)));
          foreach_copy_(m, next);
        },
        {.fullgraph = true, .backend = backend});
    step();
    CHECK(asked_by([&] { step(); }, 50) == Asked{});
    CHECK(step.counters().launches == 51);
  }
}

TEST_CASE("nor does one that broadcasts") {
  for (const Backend backend : {Backend::compiled, Backend::interpreted}) {
    const TensorList x({zeros({3, 4}), zeros({2, 1, 5}), zeros({6})});
    const TensorList y({zeros({1, 4}), zeros({5}), zeros({})});
    const TensorList z({zeros({3, 1}), zeros({7, 5}), zeros({6})});
    auto step = compile(
        [&] {
          foreach_add_(x, foreach_mul(y, 0.5));
          foreach_addcmul_(x, x, y, 1.0);
          static_cast<void>(foreach_add(y, z));
        },
        {.fullgraph = true, .backend = backend});
    step();
    CHECK(asked_by([&] { step(); }, 50) == Asked{});
    CHECK(step.counters().launches == 51);
    CHECK(step.counters().uploads == 1);
  }
}

TEST_CASE("nor does foreach_map, with new lists or in place") {
  for (const Backend backend : {Backend::compiled, Backend::interpreted}) {
    const auto params = make_params(mixed_shapes(40), 3);
    std::vector<Tensor> grads;
    for (const Tensor& param : params) grads.push_back(param.grad());
    const TensorList p(params);
    const TensorList g(grads);
    const TensorList m(copies(params));
    const TensorList steps = TensorList::per_tensor(scalars(params.size()));
    const Tensor rate = tensor(0.01);
    auto step = compile(
        [&] {
          const auto [squares, roots] = foreach_map(
              [](auto x) { return std::pair{x * x, sqrt(abs(x))}; }, g);
          foreach_map_(
              [](auto x, auto mean, auto n, auto square, auto root, auto lr) {
                const auto next = lerp(mean, square, 0.1);
                return std::tuple{x - lr * next / (root + 1e-8) / (n + 1), next,
                                  n + 1};
              },
              into(p, m, steps), squares, roots, rate);
        },
        {.fullgraph = true, .backend = backend});
    step();
    CHECK(asked_by([&] { step(); }, 50) == Asked{});
    CHECK(step.counters().launches == 51);
    CHECK(step.counters().uploads == 1);
  }
}
