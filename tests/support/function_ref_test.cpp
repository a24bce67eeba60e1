#include "fusebook/support/function_ref.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <type_traits>

using fuse::FunctionRef;

namespace {

int twice(int value) { return 2 * value; }

int call(FunctionRef<int(int)> function, int value) { return function(value); }

}  // namespace

TEST_CASE("lambdas, functions and objects are called") {
  int calls = 0;
  const auto count = [&calls](int value) { return calls += value; };
  CHECK(call(count, 3) == 3);
  CHECK(call(count, 4) == 7);
  CHECK(calls == 7);
  CHECK(call(twice, 21) == 42);
  CHECK(call(&twice, 4) == 8);
  CHECK(call([](int value) { return -value; }, 5) == -5);
}

TEST_CASE("the callable itself is called, not a copy") {
  struct Counter {
    int calls = 0;
    void operator()() { ++calls; }
  } counter;
  const FunctionRef<void()> reference = counter;
  const FunctionRef<void()> copy = reference;
  reference();
  copy();
  CHECK(counter.calls == 2);
}

TEST_CASE("arguments and results keep what they are") {
  std::string text = "a";
  const auto append = [](std::string& to) -> std::string& { return to += "b"; };
  const FunctionRef<std::string&(std::string&)> reference = append;
  CHECK(&reference(text) == &text);
  CHECK(text == "ab");
  const auto take = [](std::unique_ptr<int> number) { return *number; };
  const FunctionRef<int(std::unique_ptr<int>)> taker = take;
  CHECK(taker(std::make_unique<int>(6)) == 6);
  const auto ignored = [](int) { return "a result that nobody wants"; };
  const FunctionRef<void(int)> nothing = ignored;
  nothing(1);
}

static_assert(!std::is_constructible_v<FunctionRef<int(int)>, int>);
static_assert(
    !std::is_constructible_v<FunctionRef<int(int)>, int (&)(std::string)>);
static_assert(std::is_trivially_copyable_v<FunctionRef<int(int)>>);
