#include "fusebook/cuda_sim/gpu_sim_threads.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace fuse {
namespace {

// As doubles, numbers that are none.
constexpr char nothing_yet = char(0xff);

// set while one of its threads runs
thread_local BlockThreads* running_block = nullptr;

std::uint64_t next_random(std::uint64_t& state) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return state >> 33;
}

}  // namespace

SimIndex index_of(std::int64_t number, SimSize size) {
  const auto n = std::uint64_t(number);
  return {unsigned(n % size.x), unsigned(n / size.x % size.y),
          unsigned(n / size.x / size.y)};
}

std::vector<std::int64_t> SimArrangement::next(std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  if (order == SimOrder::descending) {
    std::reverse(numbers.begin(), numbers.end());
  }
  if (order == SimOrder::shuffled) {
    for (std::size_t i = numbers.size(); i > 1; --i) {
      std::swap(numbers[i - 1], numbers[next_random(seed) % i]);
    }
  }
  return numbers;
}

BlockThreads::BlockThreads(const SimCall& call, SimSize block)
    : call_(call),
      block_(block),
      threads_(std::size_t(block.count())),
      shared_(call.shared.size()) {
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    threads_[i].index = index_of(std::int64_t(i), block);
  }
}

void BlockThreads::start(SimIndex number) {
  number_ = number;
  std::fill(shared_.begin(), shared_.end(), nothing_yet);
  for (Thread& thread : threads_) {
    thread.state = State::ready;
    thread.stack.start(&BlockThreads::enter);
  }
}

bool BlockThreads::advance(SimArrangement& arrangement) {
  std::copy(shared_.begin(), shared_.end(), call_.shared.begin());
  bool any = false;
  for (const std::int64_t t : arrangement.next(block_.count())) {
    Thread& thread = threads_[std::size_t(t)];
    if (thread.state == State::done || thread.state == State::waits) continue;
    resume(thread);
    any = any || thread.state != State::sleeps;
  }
  std::copy(call_.shared.begin(), call_.shared.end(), shared_.begin());
  if (count(State::waits) == threads_.size()) {
    for (Thread& thread : threads_) thread.state = State::ready;
  }
  return any;
}

std::size_t BlockThreads::count(State state) const {
  return std::size_t(std::count_if(
      threads_.begin(), threads_.end(),
      [&](const Thread& thread) { return thread.state == state; }));
}

bool BlockThreads::is_done() const {
  return count(State::done) == threads_.size();
}

bool BlockThreads::is_stuck() const {
  const std::size_t waiting = count(State::waits);
  return waiting > 0 && waiting + count(State::done) == threads_.size();
}

void BlockThreads::resume(Thread& thread) {
  call_.thread->thread = thread.index;
  call_.thread->block = number_;
  running_ = &thread;
  running_block = this;
  thread.stack.resume();
  running_block = nullptr;
}

void BlockThreads::enter() {
  BlockThreads& block = *running_block;
  block.call_.call(block.call_.parameters);
  running_block->running_->state = State::done;
}

void BlockThreads::pause(State state) {
  Thread& thread = *running_block->running_;
  thread.state = state;
  thread.stack.pause();
}

void BlockThreads::wait_at_barrier() { pause(State::waits); }

void BlockThreads::sleep() { pause(State::sleeps); }

}  // namespace fuse
