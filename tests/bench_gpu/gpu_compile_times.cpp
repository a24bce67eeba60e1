#include "bench_gpu/gpu_compile_times.h"

#include <algorithm>
#include <memory>

#include "bench/own_cache.h"
#include "bench_gpu/device_timer.h"
#include "fusebook/bench/benchmark.h"
#include "fusebook/compile/compile.h"
#include "fusebook/device/device_registry.h"
#include "fusebook/jit/jit.h"
#include "fusebook/jit/loaded_libraries.h"
#include "fusebook/jit/scratch_directory.h"
#include "fusebook/nvrtc/nvrtc_compiler.h"
#include "fusebook/optim/adam.h"
#include "fusebook/support/error.h"

namespace fuse::bench {
namespace {

constexpr int rounds = 5;

bool is_simulated() { return default_device().kind == Device::Kind::cuda_sim; }

// How often the compiler of the device ran, and its disk cache served.
NvrtcCounters compiler_counters() {
  if (!is_simulated()) return nvrtc_counters();
  const JitCounters counters = jit_counters();
  return {counters.compiler_runs, counters.disk_hits};
}

// Seconds of the first call of a new compiled step beyond the second one.
double first_call(Adam& adam) {
  gpu_of(default_device())->forget_modules();
  forget_libraries();
  const double begin = device_seconds();
  auto step = compile([&] { adam.step(); });
  step();
  const double first = device_seconds();
  step();
  const double second = device_seconds();
  return (first - begin) - (second - first);
}

double checked_call(Adam& adam, long runs, long hits) {
  const NvrtcCounters before = compiler_counters();
  const double seconds = first_call(adam);
  const NvrtcCounters after = compiler_counters();
  if (after.compiler_runs - before.compiler_runs == runs &&
      after.disk_hits - before.disk_hits == hits) {
    return seconds;
  }
  throw Error("the compiler ran " +
              std::to_string(after.compiler_runs - before.compiler_runs) +
              " times where " + std::to_string(runs) + " was expected");
}

double median_us(Adam& adam, long runs, long hits) {
  std::vector<double> times;
  const int wanted = is_simulated() ? 1 : rounds;
  for (int i = 0; i < wanted; ++i) {
    times.push_back(checked_call(adam, runs, hits));
  }
  const double us = median_of(std::move(times)) * 1e6;
  // A figure of the simulator would say nothing about a GPU.
  return is_simulated() ? 0 : std::max(us, 0.0);
}

std::vector<Tensor> small_parameters(std::size_t count) {
  std::vector<Tensor> params;
  for (std::size_t i = 0; i < count; ++i) {
    params.push_back(zeros({8}));
    params.back().set_grad(zeros({8}));
  }
  return params;
}

}  // namespace

std::vector<GpuCompile> measure_gpu_compile_times(const Case& wanted) {
  Adam adam(small_parameters(wanted.sizes.size()));
  adam.step();  // makes the state
  const auto tensors = std::int64_t(wanted.sizes.size());
  std::vector<GpuCompile> rows;
  {
    const OwnCache off("off");
    rows.push_back({wanted.name, "cold", tensors, median_us(adam, 1, 0)});
  }
  const ScratchDirectory folder = make_temporary_directory();
  const OwnCache own(folder.path() + "/kernels");
  first_call(adam);  // fills it
  rows.push_back({wanted.name, "disk", tensors, median_us(adam, 0, 1)});
  return rows;
}

}  // namespace fuse::bench
