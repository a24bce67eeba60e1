// How steps and a program's own OpenMP loops get on with each other: a program
// apart, because steps of a program that has OpenMP run on OpenMP's threads.

#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "bench/median_after.h"
#include "bench/reading.h"
#include "fusebook/compile/compile.h"
#include "fusebook/optim/adam.h"
#include "fusebook/runtime/parallel.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/random.h"

namespace fuse::bench {
namespace {

void measure_openmp() {
  Generator generator(0);
  std::vector<Tensor> params;
  for (int i = 0; i < 10; ++i) {
    params.push_back(rand({1 << 20}, generator));
    params.back().set_grad(rand({1 << 20}, generator));
  }
  Adam adam(params);
  auto compiled = compile([&] { adam.step(); });
  const auto step = [&] { compiled(); };
  std::vector<float> numbers(1 << 23, 1);
  const auto loop = [&] {
#pragma omp parallel for num_threads(thread_count())
    for (std::ptrdiff_t i = 0; i < std::ptrdiff_t(numbers.size()); ++i) {
      numbers[std::size_t(i)] = numbers[std::size_t(i)] * 0.5F + 0.5F;
    }
  };
  step();
  loop();
  const char* const name = "beside OpenMP";
  const auto nothing = [] {};
  tell({"host", name, "step alone", median_after(nothing, step) * 1e6});
  tell({"host", name, "step after OpenMP", median_after(loop, step) * 1e6});
  tell({"host", name, "OpenMP alone", median_after(nothing, loop) * 1e6});
  tell({"host", name, "OpenMP after a step", median_after(step, loop) * 1e6});
}

}  // namespace
}  // namespace fuse::bench

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw fuse::UsageError("usage: bench_openmp THREADS");
    fuse::set_thread_count(std::stoi(argv[1]));
    fuse::bench::measure_openmp();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_openmp: error: %s\n", error.what());
    return 1;
  }
}
