// fork() while pool threads live and other threads step and compile: the child
// compiles a kernel of its own, steps, and is right.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "fusebook/fusebook.h"
#include "fusebook/runtime/parallel.h"
#include "support/step_testing.h"

using namespace step_testing;
using fuse::Tensor;

// The thread sanitizer cannot follow threads that a forked child starts.
#if defined(__SANITIZE_THREAD__)
constexpr bool cannot_fork = true;
#else
constexpr bool cannot_fork = false;
#endif

namespace {

constexpr unsigned patience_seconds = 120;

// A program of its own for each number: so many products, one after the other.
bool step_is_right(int number) {
  const std::vector<Tensor> expected = make_params(mixed_shapes(9), 3);
  const std::vector<Tensor> params = copies(expected);
  const auto body = [number](const std::vector<Tensor>& tensors) {
    const fuse::TensorList list(tensors);
    for (int i = 0; i <= number; ++i) fuse::foreach_mul_(list, 1.0 + i);
    fuse::foreach_add_(list, 0.5);
  };
  auto step = fuse::compile([&] { body(params); });
  for (int i = 0; i < 3; ++i) {
    step();
    body(expected);
  }
  return same_bits(params, expected);
}

// Ends the child with SIGALRM if it hangs.
int in_child(int number) {
  alarm(patience_seconds);
  return step_is_right(number) ? 0 : 1;
}

struct Threads {
  explicit Threads(int count) { fuse::set_thread_count(count); }
  ~Threads() { fuse::set_thread_count(0); }
};

}  // namespace

TEST_CASE("a child of a process with a pool compiles and steps" *
          doctest::skip(cannot_fork)) {
  const Threads scope(4);
  CHECK(step_is_right(0));
  for (int i = 1; i <= 3; ++i) {
    CHECK(jit_testing::run_child([&] { return in_child(i); }) == 0);
  }
  // What the parent has already compiled is there in the child.
  CHECK(jit_testing::run_child([] { return in_child(0); }) == 0);
  CHECK(step_is_right(4));
}

TEST_CASE("children forked while other threads step and compile" *
          doctest::skip(cannot_fork)) {
  const Threads scope(3);
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::atomic<int> next = 10;
  std::vector<std::thread> busy;
  for (int i = 0; i < 2; ++i) {
    busy.emplace_back([&] {
      while (!stop) {
        if (!step_is_right(next++ % 40)) ++wrong;
      }
    });
  }
  for (int i = 0; i < 8; ++i) {
    CHECK(jit_testing::run_child([&] { return in_child(50 + i); }) == 0);
  }
  stop = true;
  for (std::thread& thread : busy) thread.join();
  CHECK(wrong == 0);
}
