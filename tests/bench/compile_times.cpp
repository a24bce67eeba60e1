#include "bench/compile_times.h"

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bench/counted_call.h"
#include "bench/own_cache.h"
#include "bench/reading.h"
#include "fusebook/bench/benchmark.h"
#include "fusebook/compile/compile.h"
#include "fusebook/jit/jit.h"
#include "fusebook/jit/loaded_libraries.h"
#include "fusebook/jit/scratch_directory.h"
#include "fusebook/optim/adam.h"

namespace fuse::bench {
namespace {

// Differs from call to call, as a float32 too, and from process to process, so
// that not even a compiler that keeps its results has seen it.
double never_seen() {
  static double number = 1 + double(std::random_device()()) * 0x1p-32;
  number += 0x1p-20;
  return number;
}

void compile_nothing() {
  build_library("// " + std::to_string(never_seen() * 1e9) + "\n");
}

std::shared_ptr<Adam> make_adam(std::size_t tensors) {
  std::vector<Tensor> params;
  for (std::size_t i = 0; i < tensors; ++i) {
    params.push_back(zeros({8}));
    params.back().set_grad(zeros({8}));
  }
  const auto adam = std::make_shared<Adam>(params);
  adam->step();  // creates the state
  return adam;
}

void first_call(Adam& adam) {
  compile([&] { adam.step(); })();
}

// A number that differs each time makes a kernel nobody has.
void change_epsilon(Adam& adam) {
  adam.param_groups[0]["eps"] = 1e-8 * never_seen();
}

struct Figure {
  const char* name;
  JitCounters expected;  // of one call
  std::function<void()> call;
};

}  // namespace

void measure_compile_times(std::size_t tensors) {
  const ScratchDirectory folder = make_temporary_directory();
  const OwnCache cache(folder.path() + "/kernels");
  const auto adam = make_adam(tensors);
  const auto warm = make_adam(tensors);
  forget_libraries();
  first_call(*warm);  // fills the cache
  const std::vector<Figure> figures = {
      {"empty", {1, 0}, compile_nothing},
      {"cold",
       {1, 0},
       [&] {
         change_epsilon(*adam);
         first_call(*adam);
       }},
      {"disk",
       {0, 1},
       [&] {
         forget_libraries();
         first_call(*warm);
       }},
      {"memory", {0, 0}, [&] { first_call(*warm); }}};
  std::vector<std::function<void()>> calls;
  for (const Figure& figure : figures) {
    calls.emplace_back(
        [&figure] { call_counted(figure.name, figure.expected, figure.call); });
  }
  const auto times = interleaved(calls, {.min_run_time_s = 0.3});
  const std::string name = std::to_string(tensors) + " tensors";
  for (std::size_t i = 0; i < times.size(); ++i) {
    tell({"compile", name, figures[i].name, times[i].median_us()});
  }
}

void measure_first_step() {
  const auto adam = make_adam(10);
  const double begin = steady_seconds();
  auto step = compile([&] { adam->step(); });
  step();
  const double first = steady_seconds();
  step();
  const double second = steady_seconds();
  const JitCounters counters = jit_counters();
  if (counters.compiler_runs > 0 || counters.disk_hits == 0) return;
  const double us = ((first - begin) - (second - first)) * 1e6;
  tell({"compile", "10 tensors", "first step, from disk", us});
}

}  // namespace fuse::bench
