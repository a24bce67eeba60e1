#include "fusebook/compile/compile.h"

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "fusebook/foreach/foreach.h"
#include "fusebook/optim/adam.h"
#include "fusebook/reports/counters.h"
#include "fusebook/support/error.h"
#include "fusebook/support/source_place.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;

namespace {

template <class Function>
std::string error_of(Function function) {
  return testing::message_of<Error>(function);
}

std::vector<Tensor> ones(std::size_t count, const Shape& shape = {3}) {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < count; ++i) tensors.push_back(full(shape, 1));
  return tensors;
}

bool all_equal(const std::vector<Tensor>& tensors, double value) {
  for (const Tensor& tensor : tensors) {
    for (const double element : tensor.to_vector()) {
      if (element != value) return false;
    }
  }
  return true;
}

}  // namespace

// ---- one launch, one compilation --------------------------------------------

TEST_CASE("one launch and one compilation for models of every size") {
  auto step = compile([](Adam& adam) { adam.step(); });
  std::int64_t calls = 0;
  for (const std::size_t count : {1U, 10U, 1000U, 10000U, 2U}) {
    CAPTURE(count);
    const auto params = make_params(mixed_shapes(count), count);
    const auto twins = copies(params);
    Adam adam(params, {.lr = 0.01});
    Adam eager(twins, {.lr = 0.01});
    for (int i = 0; i < 2; ++i) {
      step(adam);
      eager.step();
      CHECK(step.counters().launches == ++calls);
    }
    CHECK(same_bits(params, twins));
  }
  // Models of nothing but empty tensors, numbers, or one of them.
  for (const Shape& shape : {Shape{0}, Shape{3, 0, 2}, Shape{}, Shape{1}}) {
    for (const std::size_t count : {1U, 3U}) {
      Adam adam(make_params(std::vector<Shape>(count, shape), count),
                {.lr = 0.01});
      step(adam);
      CHECK(step.counters().launches == ++calls);
    }
  }
  CHECK(step.counters().compilations == 1);
  CHECK(step.counters().recompiles == 0);
}

TEST_CASE("the newest kernel can be launched again by itself") {
  const auto params = make_params({{5}, {3}}, 1);
  const auto twins = copies(params);
  Adam adam(params);
  Adam eager(twins);
  int calls = 0;
  auto step = compile([&] {
    ++calls;
    adam.step();
  });
  CHECK(error_of([&] { step.relaunch(); }) ==
        "function step was never called, so there is nothing to relaunch");
  step();
  step.relaunch();
  eager.step();
  eager.step();
  CHECK(calls == 1);
  CHECK(step.counters().launches == 2);
  CHECK(bitwise_equal(params, twins));
}

TEST_CASE("several optimizers in one function are one launch") {
  Adam first(make_params(mixed_shapes(5), 1));
  Adam second(make_params(mixed_shapes(7), 2, DType::float64));
  const auto twins = copies(first.parameters());
  const auto double_twins = copies(second.parameters());
  Adam eager_first(twins);
  Adam eager_second(double_twins);
  auto step = compile([&] {
    first.step();
    second.step();
  });
  for (int i = 0; i < 2; ++i) {
    step();
    eager_first.step();
    eager_second.step();
  }
  CHECK(step.counters().launches == 2);
  CHECK(step.counters().compilations == 1);
  CHECK(same_bits(first.parameters(), twins));
  CHECK(same_bits(second.parameters(), double_twins));
}

// ---- the function is a function ---------------------------------------------

TEST_CASE("everything else in the function runs once at every call") {
  const auto list = ones(2);
  int calls = 0;
  std::vector<int> order;
  auto step = compile([&] {
    order.push_back(++calls);
    foreach_add_(list, 1.0);
    order.push_back(-calls);
  });
  step();
  step();
  step();
  CHECK(calls == 3);
  CHECK(order == std::vector<int>{1, -1, 2, -2, 3, -3});
  CHECK(all_equal(list, 4));
}

TEST_CASE("control flow may change from call to call") {
  const auto list = ones(2);
  int calls = 0;
  auto step = compile([&] {
    if (++calls % 2 == 0) {
      foreach_mul_(list, 3.0);
    } else {
      foreach_add_(list, 1.0);
    }
  });
  for (int i = 0; i < 6; ++i) step();
  CHECK(all_equal(list, ((1 + 1) * 3 + 1) * 3 * 3 + 3));
  CHECK(step.counters().compilations == 2);
  CHECK(step.counters().launches == 6);
}

TEST_CASE("arguments and results pass through") {
  const auto list = ones(2);
  auto add = compile([](const std::vector<Tensor>& to, double number) {
    foreach_add_(to, number);
    return number * 2;
  });
  CHECK(add(list, 1.5) == 3);
  CHECK(all_equal(list, 2.5));

  int kept = 7;
  auto reference = compile([&](int by) -> int& {
    foreach_add_(list, 1.0);
    kept += by;
    return kept;
  });
  reference(1) = 100;
  CHECK(kept == 100);
  CHECK(all_equal(list, 3.5));

  auto owner = compile([](std::unique_ptr<int> number) { return number; });
  CHECK(*owner(std::make_unique<int>(5)) == 5);

  const TensorList doubled = compile([&] { return foreach_mul(list, 2.0); })();
  CHECK(all_equal(doubled.tensors(), 7));
  CHECK(all_equal(list, 3.5));
}

TEST_CASE("copies of a compiled function share kernels and counters") {
  const auto list = ones(1);
  auto step = compile([&] { foreach_add_(list, 1.0); });
  auto copy = step;
  step();
  copy();
  CHECK(all_equal(list, 3));
  CHECK(step.counters() == copy.counters());
  CHECK(step.counters().launches == 2);
  CHECK(step.counters().compilations == 1);
}

TEST_CASE("a function that records nothing launches nothing") {
  int calls = 0;
  auto step = compile([&] { ++calls; });
  step();
  CHECK(calls == 1);
  CHECK(step.counters() == Counters{});
  auto unused = compile([&] {
    const TensorList dropped = foreach_mul(ones(2), 2.0);
    static_cast<void>(dropped);
  });
  unused();
  CHECK(unused.counters() == Counters{});
  auto nothing = compile([] { foreach_add_(TensorList(), 1.0); });
  nothing();
  CHECK(nothing.counters().launches == 0);
}

// ---- nesting ----------------------------------------------------------------

TEST_CASE("a compiled function inside another becomes part of it") {
  const auto list = ones(2);
  int calls = 0;
  auto inner = compile([&] {
    ++calls;
    foreach_add_(list, 1.0);
    return 5;
  });
  auto outer = compile([&] {
    foreach_mul_(list, 2.0);
    const int five = inner();
    foreach_mul_(list, double(five));
  });
  outer();
  CHECK(calls == 1);
  CHECK(all_equal(list, (1 * 2 + 1) * 5));
  CHECK(outer.counters().launches == 1);
  CHECK(outer.counters().compilations == 1);
  CHECK(inner.counters() == Counters{.inlined = 1});
  CHECK(outer.counters().inlined == 0);
  CHECK(testing::contains(inner.report(),
                          ": the last call became part of function step in " +
                              short_path(__FILE__) + ":"));
  CHECK(testing::contains(error_of([&] { assert_fused(inner); }),
                          "the last call became part of function step in "));
  inner();
  CHECK(inner.counters().launches == 1);
  CHECK(inner.counters().inlined == 1);
  assert_fused(inner);
  CHECK(all_equal(list, 16));
}

TEST_CASE("a function may call itself") {
  const auto list = ones(1);
  Compiled<std::function<void(int)>>* self = nullptr;
  Compiled<std::function<void(int)>> step =
      compile(std::function<void(int)>([&](int depth) {
        foreach_add_(list, 1.0);
        if (depth > 0) (*self)(depth - 1);
      }));
  self = &step;
  step(3);
  CHECK(all_equal(list, 5));
  CHECK(step.counters().launches == 1);
  CHECK(step.counters().inlined == 0);
}

// ---- exceptions -------------------------------------------------------------

TEST_CASE("an exception leaves every tensor as it was; the next call works") {
  const auto params = make_params(mixed_shapes(4), 1);
  const auto before = copies(params);
  Adam adam(params);
  bool fails = true;
  int calls = 0;
  auto step = compile([&] {
    ++calls;
    adam.step();
    if (fails) throw std::runtime_error("no luck");
  });
  CHECK_THROWS_WITH_AS(step(), "no luck", std::runtime_error);
  CHECK(calls == 1);
  CHECK(same_bits(params, before));
  CHECK_FALSE(adam.state(params[0], "step").defined());
  CHECK(step.counters() == Counters{});
  CHECK(Recorder::current() == nullptr);

  fails = false;
  step();
  Adam eager(before);
  eager.step();
  CHECK(same_bits(params, before));
  CHECK(step.counters().launches == 1);
  CHECK(step.counters().compilations == 1);

  fails = true;
  CHECK_THROWS_AS(step(), std::runtime_error);
  fails = false;
  step();
  eager.step();
  CHECK(same_bits(params, before));
}

TEST_CASE("what was flushed before an exception stays, the rest does not") {
  const auto first = ones(1);
  const auto second = ones(1);
  auto step = compile([&] {
    foreach_add_(first, 1.0);
    CHECK(first[0].to_vector()[0] == 2);
    foreach_add_(second, 1.0);
    throw std::runtime_error("too late");
  });
  CHECK_THROWS_AS(step(), std::runtime_error);
  CHECK(all_equal(first, 2));
  CHECK(all_equal(second, 1));
}

TEST_CASE("an exception in a nested function passes through both") {
  const auto list = ones(1);
  auto inner = compile([&] {
    foreach_add_(list, 1.0);
    throw std::runtime_error("inside");
  });
  auto outer = compile([&] { inner(); });
  CHECK_THROWS_WITH_AS(outer(), "inside", std::runtime_error);
  CHECK(all_equal(list, 1));
  foreach_add_(list, 1.0);  // eager again
  CHECK(all_equal(list, 2));

  // One that is caught inside takes nothing back: the outer call goes on.
  int caught = 0;
  auto patient = compile([&] {
    try {
      inner();
    } catch (const std::runtime_error&) {
      ++caught;
    }
    foreach_mul_(list, 10.0);
  });
  patient();
  CHECK(caught == 1);
  CHECK(all_equal(list, 30));
}

TEST_CASE("a list of a call that failed has no value, and says so") {
  const auto list = ones(2);
  TensorList kept;
  auto step = compile([&] {
    kept = foreach_mul(list, 2.0);
    throw std::runtime_error("no luck");
  });
  CHECK_THROWS_AS(step(), std::runtime_error);
  const std::string message =
      "this list was never computed: the compiled function that recorded it "
      "ended with an exception";
  CHECK(error_of([&] { kept.tensors(); }) == message);
  CHECK(error_of([&] { foreach_add_(list, kept); }) == message);
  CHECK(error_of([&] { foreach_add_(kept, list); }) == message);
  CHECK(error_of([&] { foreach_copy_(kept, list); }) == message);
  CHECK(error_of([&] { static_cast<void>(foreach_sub(list, kept)); }) ==
        message);
  CHECK(error_of([&] { compile([&] { foreach_add_(list, kept); })(); }) ==
        message);
  CHECK(all_equal(list, 1));
}

// ---- errors -----------------------------------------------------------------

TEST_CASE(
    "lists that do not fit are an error with the place, nothing happens") {
  const auto list = ones(2);
  const auto longer = ones(3);
  const auto other = ones(2, {4});
  int line = 0;
  auto step = compile([&](const std::vector<Tensor>& operand) {
    foreach_mul_(list, 2.0);
    line = __LINE__ + 1;
    foreach_add_(list, operand);
  });
  std::string message = error_of([&] { step(longer); });
  const std::string place =
      std::string(", at ") + __FILE__ + ":" + std::to_string(line);
  CHECK(message ==
        "foreach_add: operand 2 has 3 tensors but operand 1 has 2" + place);
  message = error_of([&] { step(other); });
  CHECK(message ==
        "foreach_add: tensor 0 of operand 2 has shape [4] but operand 1 has "
        "[3], and these do not broadcast" +
            place);
  CHECK(all_equal(list, 1));
  step(ones(2));
  CHECK(all_equal(list, 3));
}

TEST_CASE("memory that overlaps is stored in order, in two launches") {
  Tensor whole = full({6}, 1);
  const std::vector<Tensor> a = {from_blob(whole.data<float>(), {4})};
  const std::vector<Tensor> b = {from_blob(whole.data<float>() + 2, {4})};
  const auto bystander = ones(1);
  const TensorList first(a, "first");
  const TensorList second(b, "second");
  auto step = compile([&] {
    foreach_mul_(bystander, 5.0);
    foreach_mul_(first, 2.0);
    foreach_mul_(second, 3.0);
  });
  step();
  CHECK(whole.to_vector() == std::vector<double>{2, 2, 6, 6, 3, 3});
  CHECK(all_equal(bystander, 5));
  CHECK(step.counters().launches == 2);
  CHECK(step.counters().graph_breaks == 1);
  // The same lists, read only, are in one launch.
  const auto sum = ones(1, {4});
  auto reading =
      compile([&] { foreach_copy_(sum, foreach_add(first, second)); });
  reading();
  CHECK(sum[0].to_vector() == std::vector<double>{8, 8, 9, 9});
  CHECK(reading.counters().launches == 1);
}

TEST_CASE("memory that one operation stores and reads elsewhere is an error") {
  Tensor whole = full({6}, 1);
  const TensorList first({from_blob(whole.data<float>(), {4})}, "first");
  const TensorList second({from_blob(whole.data<float>() + 2, {4})}, "second");
  const auto bystander = ones(1);
  auto step = compile([&] {
    foreach_mul_(bystander, 5.0);
    foreach_add_(first, second);
  });
  for (int i = 0; i < 2; ++i) {
    const std::string message = error_of([&] { step(); });
    CHECK(testing::contains(message, "first[0]"));
    CHECK(testing::contains(message, "second[0]"));
    CHECK(all_equal({whole}, 1));
    CHECK(all_equal(bystander, 1));
  }
  CHECK(step.counters().launches == 0);
}

TEST_CASE("one list of the same memory may be both source and target") {
  const auto list = ones(2);
  const TensorList again(list);
  auto step = compile([&] {
    foreach_mul_(list, 3.0);
    foreach_addcmul_(list, again, again, 1.0);
  });
  step();
  CHECK(all_equal(list, 12));
}

TEST_CASE("a broken compiler is an error; the next call works") {
  const auto params = make_params({{3}, {2}}, 5);
  const auto twins = copies(params);
  Adam adam(params, {.lr = 0.0625});
  auto step = compile([&] { adam.step(); });
  {
    const jit_testing::Env compiler("FUSEBOOK_CXX", "/bin/false");
    CHECK_THROWS_AS(step(), Error);
    CHECK_THROWS_AS(step(), Error);
  }
  CHECK(same_bits(params, twins));
  CHECK(step.counters().compilations == 0);
  CHECK(step.counters().recompiles == 0);
  CHECK(step.counters().launches == 0);
  step();
  Adam eager(twins, {.lr = 0.0625});
  eager.step();
  CHECK(same_bits(params, twins));
  CHECK(step.counters().compilations == 1);
  CHECK(step.counters().launches == 1);
}

TEST_CASE("without a compiler steps run interpreted, which is said once") {
  const auto params = make_params(mixed_shapes(6), 7);
  const auto twins = copies(params);
  Adam adam(params, {.lr = 0.03125});
  Adam eager(twins, {.lr = 0.03125});
  auto step = compile([&] { adam.step(); });
  auto again = compile([&] { foreach_mul_(params, 0.75); });
  const jit_testing::Env compiler("FUSEBOOK_CXX", "/nonexistent/compiler");
  jit_testing::CapturedStderr captured;
  for (int i = 0; i < 3; ++i) {
    step();
    again();
    eager.step();
    foreach_mul_(twins, 0.75);
  }
  const std::string text = captured.stop();
  CHECK(same_bits(params, twins));
  CHECK(step.counters().launches == 3);
  CHECK(step.counters().compilations == 1);
  CHECK(text.rfind("fusebook: steps are interpreted: ", 0) == 0);
  CHECK(jit_testing::count_of(text, "\n") == 1);
}

// ---- threads ----------------------------------------------------------------

namespace {

// A function that stays in its call until it is let go.
struct Waiting {
  std::atomic<bool> inside = false;
  std::atomic<bool> may_go = false;
  void operator()(const std::vector<Tensor>& list) {
    foreach_add_(list, 1.0);
    inside = true;
    while (!may_go) std::this_thread::yield();
  }
};

}  // namespace

TEST_CASE(
    "a call while another thread is in one is an error, and harms nobody") {
  const auto list = ones(1);
  const auto other = ones(1);
  Waiting waiting;
  auto step = compile([&](const std::vector<Tensor>& on) { waiting(on); },
                      {.name = "shared"});
  auto around = compile([&] { step(other); });
  std::thread first([&] { step(list); });
  while (!waiting.inside) std::this_thread::yield();
  const std::string expected = "function shared in " + short_path(__FILE__);
  for (int i = 0; i < 3; ++i) {
    for (const std::string& message :
         {error_of([&] { step(other); }), error_of([&] { around(); }),
          error_of([&] { step.relaunch(); })}) {
      CHECK(testing::contains(message, expected));
      CHECK(testing::contains(message, "compile a function for each thread"));
    }
  }
  waiting.may_go = true;
  first.join();
  CHECK(all_equal(list, 2));
  CHECK(all_equal(other, 1));
  CHECK(step.counters() ==
        Counters{.launches = 1,
                 .compilations = 1,
                 .uploads = 1,
                 .bytes_moved = step.counters().bytes_moved});
  // One after the other they may.
  std::thread second([&] { step(list); });
  second.join();
  step(list);
  around();
  CHECK(all_equal(list, 4));
  CHECK(all_equal(other, 2));
  CHECK(step.counters().launches == 3);
}

TEST_CASE("an error in a call lets other threads in") {
  const auto list = ones(1);
  auto step = compile([&](bool fails) {
    foreach_add_(list, 1.0);
    if (fails) throw Error("on purpose");
  });
  CHECK(error_of([&] { step(true); }) == "on purpose");
  std::thread other([&] { step(false); });
  other.join();
  CHECK(all_equal(list, 2));
}

TEST_CASE("threads compile and call functions of their own") {
  std::vector<std::thread> threads;
  std::vector<std::string> failures(4);
  for (std::size_t t = 0; t < failures.size(); ++t) {
    threads.emplace_back([t, &failures] {
      const auto params = make_params(mixed_shapes(6), t);
      const auto twins = copies(params);
      Adam adam(params, {.lr = 0.25});
      Adam eager(twins, {.lr = 0.25});
      auto step = compile([&] { adam.step(); });
      for (int i = 0; i < 20; ++i) {
        step();
        eager.step();
      }
      if (!same_bits(params, twins)) failures[t] = "other bits";
      if (step.counters().launches != 20) failures[t] = "launches";
      if (step.counters().compilations != 1) failures[t] = "compilations";
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) CHECK(failure.empty());
}
