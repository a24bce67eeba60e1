// A program that uses OpenMP itself: its regions and ours take turns, nest in
// either order, and run side by side. Nothing hangs, every bit is right.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
#include <omp.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "fusebook.h"
#include "parallel.h"
#include "step_testing.h"

using namespace step_testing;
using fuse::Tensor;

namespace {

constexpr unsigned patience_seconds = 300;
constexpr int team = 4;

// Ends the program if it hangs.
const unsigned before = alarm(patience_seconds);

struct Threads {
  explicit Threads(int count) { fuse::set_thread_count(count); }
  ~Threads() { fuse::set_thread_count(0); }
};

// The program's own work: the sum of the squares below `n`, by its own threads.
std::int64_t sum_of_squares(std::int64_t n) {
  std::int64_t sum = 0;
#pragma omp parallel for num_threads(team) reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += i * i;
  return sum;
}
std::int64_t right_sum(std::int64_t n) { return (n - 1) * n * (2 * n - 1) / 6; }

// Compiled steps of Adam against eager ones on one thread.
class Training {
 public:
  explicit Training(std::uint64_t seed)
      : params_(make_params(shapes(), seed)),
        expected_(copies(params_)),
        adam_(params_, {.lr = 0.01}),
        eager_(expected_, {.lr = 0.01}) {}

  void step() { step_(); }
  void step_eagerly() { eager_.step(); }
  bool is_right() const { return same_bits(params_, expected_); }

 private:
  // Large enough for a share of its own for each thread.
  static std::vector<fuse::Shape> shapes() {
    std::vector<fuse::Shape> shapes = mixed_shapes(9);
    shapes.push_back({100003});
    return shapes;
  }

  std::vector<Tensor> params_;
  std::vector<Tensor> expected_;
  fuse::Adam adam_;
  fuse::Adam eager_;
  fuse::Compiled<std::function<void()>> step_ =
      fuse::compile(std::function<void()>([this] { adam_.step(); }));
};

}  // namespace

TEST_CASE("regions of the program and of the library take turns") {
  REQUIRE(before == 0);
  const Threads scope(team);
  Training training(1);
  for (int i = 0; i < 200; ++i) {
    training.step();
    CHECK(sum_of_squares(1000 + i) == right_sum(1000 + i));
  }
  for (int i = 0; i < 200; ++i) training.step_eagerly();
  CHECK(training.is_right());
}

TEST_CASE("steps inside a parallel region of the program") {
  const Threads scope(team);
  std::vector<std::unique_ptr<Training>> trainings;
  for (int i = 0; i < team; ++i) {
    trainings.push_back(std::make_unique<Training>(10 + i));
  }
  std::atomic<int> ran = 0;
#pragma omp parallel num_threads(team)
  {
    Training& mine = *trainings[std::size_t(omp_get_thread_num())];
    for (int i = 0; i < 20; ++i) mine.step();
    ++ran;
  }
  REQUIRE(ran == team);
  for (const auto& training : trainings) {
    for (int i = 0; i < 20; ++i) training->step_eagerly();
    CHECK(training->is_right());
  }
}

TEST_CASE("parallel regions of the program inside parts of the library's") {
  const Threads scope(team);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::int64_t> sums(2 * team, 0);
    fuse::parallel_run(
        int(sums.size()),
        [](void* context, int part) {
          (*static_cast<std::vector<std::int64_t>*>(
              context))[std::size_t(part)] = sum_of_squares(500 + part);
        },
        &sums);
    for (int part = 0; part < int(sums.size()); ++part) {
      CHECK(sums[std::size_t(part)] == right_sum(500 + part));
    }
  }
}

TEST_CASE("steps on one thread beside the program's regions on another") {
  const Threads scope(team);
  Training training(2);
  std::atomic<bool> done = false;
  std::int64_t wrong = 0;
  std::thread other([&] {
    while (!done) wrong += sum_of_squares(2000) != right_sum(2000);
  });
  for (int i = 0; i < 100; ++i) training.step();
  done = true;
  other.join();
  CHECK(wrong == 0);
  for (int i = 0; i < 100; ++i) training.step_eagerly();
  CHECK(training.is_right());
}
