#include "bench/compile_times.h"

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "benchmark.h"
#include "compile.h"
#include "cpu_jit.h"
#include "optim/adam.h"

namespace fuse::bench {
namespace {

constexpr int rounds = 9;

// Adds what makes a source unlike any that was compiled before.
std::string never_seen(const std::string& source) {
  static int count = 0;
  return source + "\n// " + std::to_string(++count) + "\n";
}

// The first step of a new function over so many tensors, state included.
std::function<void()> first_step(std::size_t tensors) {
  std::vector<Tensor> params;
  for (std::size_t i = 0; i < tensors; ++i) {
    params.push_back(zeros({8}));
    params.back().set_grad(zeros({8}));
  }
  const auto adam = std::make_shared<Adam>(params);
  adam->step();  // creates the state
  return [adam] {
    // A literal that differs each time makes a kernel nobody has.
    static double epsilon = 1e-8;
    epsilon *= 2;
    adam->param_groups[0]["eps"] = epsilon;
    compile([&] { adam->step(); })();
  };
}

}  // namespace

CompileTimes measure_compile_times() {
  setenv("FUSEBOOK_CACHE_DIR", "off", 1);
  const auto few = first_step(10);
  const auto many = first_step(10000);
  const auto times =
      interleaved({[] { build_library(never_seen("")); }, few, many},
                  {.min_run_time_s = 0.5, .min_rounds = rounds});
  return {times[0].median(), times[1].median(), times[2].median()};
}

}  // namespace fuse::bench
