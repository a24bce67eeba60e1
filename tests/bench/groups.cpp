#include "bench/groups.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "bench/paused_clock.h"
#include "bench/reading.h"
#include "fusebook/compile/compile.h"
#include "fusebook/optim/adam.h"
#include "fusebook/tensor/random.h"

namespace fuse::bench {
namespace {

constexpr std::size_t tensor_count = 10000;
constexpr std::int64_t size = 64;
constexpr const char* name = "10000 x 64";
constexpr const char* bare = "bare kernel";
constexpr const char* bare_of_many = "bare kernel, 10000 rates";
constexpr const char* bare_of_many_moved = "bare kernel, 10000 rates, moved";

enum class Rates { as_floats, as_tensors };

// Rates that all differ, and are others at every call.
double next_rate() {
  static std::size_t calls = 0;
  return 1e-3 + 1e-9 * double(calls++ % 1000000);
}

std::shared_ptr<Adam> make_adam(std::size_t groups, Rates rates) {
  Generator generator(0);
  std::vector<Adam::Group> all;
  for (std::size_t g = 0; g < groups; ++g) {
    std::vector<Tensor> params;
    for (std::size_t i = 0; i < tensor_count / groups; ++i) {
      params.push_back(rand({size}, generator));
      params.back().set_grad(rand({size}, generator));
    }
    AdamOptions options;
    if (rates == Rates::as_tensors) options.lr = tensor(0.0);
    options.lr.assign(next_rate());
    all.emplace_back(std::move(params), options);
  }
  const auto adam = std::make_shared<Adam>(std::move(all));
  adam->step();  // creates the state
  return adam;
}

void move_rates(Adam& adam) {
  for (std::size_t g = 0; g < adam.group_count(); ++g) {
    adam.param_groups[g].options.lr.assign(next_rate());
  }
}

std::string name_of_loop(std::size_t groups, Rates rates) {
  const std::string count =
      groups == 1 ? "1 group" : std::to_string(groups) + " groups";
  return count + (rates == Rates::as_floats ? ", floats" : ", tensors");
}

void add_loops(std::vector<Loop>& loops, std::size_t groups, Rates rates) {
  const auto adam = make_adam(groups, rates);
  auto step = compile([adam] { adam->step(); });
  step();
  const std::string begin = name_of_loop(groups, rates);
  loops.push_back({begin, [] {}, step});
  const auto other = make_adam(groups, rates);
  auto moved = compile([other] { other->step(); });
  moved();
  move_rates(*other);
  moved();  // from here on numbers are inputs
  loops.push_back({begin + ", moved", [other] { move_rates(*other); }, moved});
  if (groups == tensor_count && rates == Rates::as_floats) {
    // The powers of the betas are computed for each rate.
    const auto again = [moved]() mutable { moved.relaunch(); };
    loops.push_back({bare_of_many, [] {}, again});
    // Whoever moves 10,000 rates uses the caches too.
    loops.push_back(
        {bare_of_many_moved, [other] { move_rates(*other); }, again});
  }
}

std::vector<Loop> all_loops() {
  const auto adam = make_adam(1, Rates::as_floats);
  auto step = compile([adam] { adam->step(); });
  step();
  std::vector<Loop> loops = {
      {bare, [] {}, [step]() mutable { step.relaunch(); }}};
  for (const std::size_t groups : {1, 100, 10000}) {
    for (const Rates rates : {Rates::as_floats, Rates::as_tensors}) {
      add_loops(loops, groups, rates);
    }
  }
  return loops;
}

// Each finds the kernel of the one before in memory.
void measure_first_calls(std::size_t groups) {
  for (const Rates rates : {Rates::as_floats, Rates::as_tensors}) {
    const auto adam = make_adam(groups, rates);
    const auto first_call = [&] { compile([&] { adam->step(); })(); };
    first_call();
    std::vector<double> times;
    for (int i = 0; i < 5; ++i) {
      const double begin = steady_seconds();
      first_call();
      times.push_back(steady_seconds() - begin);
    }
    tell({"groups", name, "first call, " + name_of_loop(groups, rates),
          Measurement(1, times).median_us()});
  }
}

}  // namespace

void measure_groups() {
  const std::vector<Loop> loops = all_loops();
  const auto times = measure_loops(loops);
  for (std::size_t i = 0; i < loops.size(); ++i) {
    tell({"groups", name, loops[i].name, times[i], 0, bare, times[0]});
  }
  measure_first_calls(1);
  measure_first_calls(10000);
}

}  // namespace fuse::bench
