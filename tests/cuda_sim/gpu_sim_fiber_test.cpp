#include "fusebook/cuda_sim/gpu_sim_fiber.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

using fuse::SimFiber;

namespace {

thread_local SimFiber* current = nullptr;
thread_local std::vector<int> seen;
thread_local std::array<double, 2> sums;

void resume(SimFiber& fiber) {
  current = &fiber;
  fiber.resume();
}

void three_parts() {
  SimFiber& own = *current;
  for (int part = 0; part < 3; ++part) {
    seen.push_back(part);
    own.pause();
  }
}

// What a compiler keeps in registers: more integers and floats than the ones
// that a called function must leave alone.
void sum_of_many() {
  SimFiber& own = *current;
  std::array<std::int64_t, 16> whole = {};
  std::array<double, 16> real = {};
  for (int turn = 0; turn < 5; ++turn) {
    for (std::size_t i = 0; i < whole.size(); ++i) {
      whole[i] += std::int64_t(i) + turn;
      real[i] += 0.5 * double(i) - turn;
    }
    own.pause();
  }
  for (std::size_t i = 0; i < whole.size(); ++i) {
    sums[0] += double(whole[i]);
    sums[1] += real[i];
  }
}

void look_at_alignment() {
  alignas(16) volatile char bytes[16] = {};
  seen.push_back(int(reinterpret_cast<std::uintptr_t>(&bytes[0]) % 16));
}

}  // namespace

TEST_CASE("a body goes on where it paused") {
  seen.clear();
  SimFiber fiber;
  fiber.start(three_parts);
  for (int turn = 0; turn < 3; ++turn) {
    resume(fiber);
    seen.push_back(10 * turn);
  }
  resume(fiber);  // returns
  CHECK(seen == std::vector{0, 0, 1, 10, 2, 20});
}

TEST_CASE("bodies in turn keep their numbers apart") {
  sums = {};
  std::array<SimFiber, 7> fibers;
  for (SimFiber& each : fibers) each.start(sum_of_many);
  for (int turn = 0; turn < 6; ++turn) {
    for (SimFiber& each : fibers) resume(each);
  }
  // Over 16 numbers and five turns: i + turn, and i / 2 - turn.
  CHECK(sums[0] == 7 * (5 * 120 + 16 * 10));
  CHECK(sums[1] == 7 * (5 * 60 - 16 * 10));
}

TEST_CASE("a stack serves again, also where a body was abandoned") {
  seen.clear();
  for (int round = 0; round < 3; ++round) {
    SimFiber fiber;
    fiber.start(three_parts);
    resume(fiber);
    fiber.start(look_at_alignment);
    resume(fiber);
  }
  CHECK(seen == std::vector{0, 0, 0, 0, 0, 0});
}

TEST_CASE("more stacks than are kept, from several threads") {
  const auto run = [] {
    seen.clear();
    std::vector<std::unique_ptr<SimFiber>> fibers;
    for (int i = 0; i < 1100; ++i) {
      fibers.push_back(std::make_unique<SimFiber>());
      fibers.back()->start(look_at_alignment);
    }
    for (const auto& each : fibers) resume(*each);
    return seen.size() == 1100 && seen == std::vector(1100, 0);
  };
  bool other = false;
  std::thread thread([&] { other = run(); });
  CHECK(run());
  thread.join();
  CHECK(other);
  CHECK(run());
}
