#include "bench/compile_times.h"

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/reading.h"
#include "benchmark.h"
#include "compile.h"
#include "cpu_jit.h"
#include "error.h"
#include "library_cache.h"
#include "optim/adam.h"

namespace fuse::bench {
namespace {

// Adds what makes a source unlike any that was compiled before.
std::string never_seen(const std::string& source) {
  static int count = 0;
  return source + "\n// " + std::to_string(++count) + "\n";
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
  static double epsilon = 1e-8;
  epsilon *= 1.5;
  adam.param_groups[0]["eps"] = epsilon;
}

}  // namespace

void measure_compile_times(std::size_t tensors) {
  const auto adam = make_adam(tensors);
  const auto warm = make_adam(tensors);
  first_call(*warm);
  const auto times = interleaved({[] { build_library(never_seen("")); },
                                  [&] {
                                    change_epsilon(*adam);
                                    first_call(*adam);
                                  },
                                  [&] {
                                    forget_libraries();
                                    first_call(*warm);
                                  },
                                  [&] { first_call(*warm); }},
                                 {.min_run_time_s = 0.3});
  const std::string name = std::to_string(tensors) + " tensors";
  const char* const variants[] = {"empty", "cold", "disk", "memory"};
  for (std::size_t i = 0; i < times.size(); ++i) {
    tell({"compile", name, variants[i], times[i].median_us()});
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
  if (jit_counters().compiler_runs > 0) return;  // it had to be compiled
  const double us = ((first - begin) - (second - first)) * 1e6;
  tell({"compile", "10 tensors", "first step, from disk", us});
}

}  // namespace fuse::bench
