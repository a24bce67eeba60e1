#include "bench_gpu/gpu_steps.h"

#include <functional>
#include <memory>

#include "bench/case_model.h"
#include "bench_gpu/device_memory.h"
#include "bench_gpu/device_timer.h"
#include "bench_gpu/gpu_cases.h"
#include "fusebook/bench/adam_by_hand.h"
#include "fusebook/bench/bandwidth.h"
#include "fusebook/compile/compile.h"
#include "fusebook/device/device_registry.h"
#include "fusebook/optim/adam.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/random.h"

namespace fuse::bench {
namespace {

using Step = std::function<void()>;

constexpr const char* limit_name = "limit, copy";
constexpr const char* by_hand_name = "by hand";
/// Above this a loop over tensors takes too long to be worth the time.
constexpr std::size_t most_for_loop = 1000;

struct Variant {
  GpuStep row;
  Step step;
};

// Launches and bytes of a call, after one that makes state and kernels.
Variant counted(const Case& of, const char* name, Step step) {
  step();
  const Counters before = process_counters();
  step();
  const Counters spent = process_counters() - before;
  GpuStep row;
  row.of_case = of.name;
  row.variant = name;
  row.launches = spent.launches;
  row.bytes = spent.bytes_moved;
  return {row, std::move(step)};
}

Variant limit_of(const Case& wanted) {
  auto pattern = std::make_shared<AccessPattern>(wanted.sizes);
  GpuStep row;
  row.of_case = wanted.name;
  row.variant = limit_name;
  row.bytes = pattern->bytes();
  return {row, [pattern] { pattern->run(); }};
}

void add_compiled(std::vector<Variant>& variants, const Case& wanted,
                  const CaseModel& model) {
  auto adam = std::make_shared<Adam>(model.copy());
  auto compiled = compile([adam] { adam->step(); });
  variants.push_back(counted(wanted, "compiled", compiled));
  Variant bare = variants.back();
  bare.row.variant = "bare kernel";
  bare.step = [compiled]() mutable { compiled.relaunch(); };
  variants.push_back(bare);
}

Variant eager(const Case& wanted, const char* name, const CaseModel& model,
              bool foreach) {
  auto adam =
      std::make_shared<Adam>(model.copy(), AdamOptions{.foreach = foreach});
  return counted(wanted, name, [adam] { adam->step(); });
}

std::vector<Variant> variants_of(const Case& wanted) {
  const CaseModel model(wanted);
  std::vector<Variant> variants = {limit_of(wanted)};
  auto hand = std::make_shared<AdamByHand>(model.copy());
  variants.push_back(counted(wanted, by_hand_name, [hand] { hand->step(); }));
  variants.back().row.bytes = variants.front().row.bytes;
  add_compiled(variants, wanted, model);
  variants.push_back(eager(wanted, "foreach", model, true));
  if (wanted.sizes.size() <= most_for_loop) {
    variants.push_back(eager(wanted, "tensor by tensor", model, false));
  }
  return variants;
}

// Parameters and two averages of each variant, the first copy with gradients,
// what the limit moves, and the temporaries of a list.
std::int64_t bytes_needed(const Case& wanted) {
  constexpr std::int64_t arrays = 4 * 3 + 2 + 7 + 4;
  return elements_of(wanted) * arrays * std::int64_t(sizeof(float));
}

double median(const std::vector<Timing>& times, double Timing::* what) {
  std::vector<double> values;
  for (const Timing& time : times) values.push_back(time.*what);
  return median_of(std::move(values));
}

double median_ratio(const std::vector<Timing>& times,
                    const std::vector<Timing>& to, double Timing::* what) {
  std::vector<double> values;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (to[i].*what > 0) values.push_back(times[i].*what / to[i].*what);
  }
  return values.empty() ? 0 : median_of(std::move(values));
}

using Timings = std::vector<std::vector<Timing>>;

Timings time_all(const std::vector<Variant>& variants, bool simulated) {
  std::vector<Step> steps;
  steps.reserve(variants.size());
  for (const Variant& variant : variants) steps.push_back(variant.step);
  TimingOptions options;
  if (simulated) {
    options = {.block_seconds = 0, .least_rounds = 1, .seconds_for_each = 0};
  }
  Timings times = time_in_turns(gpu_of(default_device()), steps, options);
  for (const auto& of_one : times) {
    for (const Timing& time : of_one) {
      if (time.wall > 0 && time.events > 0 && time.host > 0) continue;
      throw Error("a clock stood still while steps were timed");
    }
  }
  return times;
}

void add_times(std::vector<Variant>& variants, const Timings& times) {
  const auto& limit = times[0];
  const auto& by_hand = times[1];
  for (std::size_t i = 0; i < variants.size(); ++i) {
    GpuStep& row = variants[i].row;
    row.us = median(times[i], &Timing::wall) * 1e6;
    row.event_us = median(times[i], &Timing::events) * 1e6;
    row.host_us = median(times[i], &Timing::host) * 1e6;
    row.ratio_to_limit = median_ratio(times[i], limit, &Timing::wall);
    row.event_ratio_to_limit = median_ratio(times[i], limit, &Timing::events);
    row.ratio_to_by_hand = median_ratio(times[i], by_hand, &Timing::events);
  }
}

}  // namespace

std::vector<GpuStep> measure_gpu_steps(const Case& wanted) {
  require_device_memory(bytes_needed(wanted));
  std::vector<Variant> variants = variants_of(wanted);
  const bool simulated = default_device().kind == Device::Kind::cuda_sim;
  const Timings times = time_all(variants, simulated);
  // What a simulated device takes is no figure of anything.
  if (!simulated) add_times(variants, times);
  std::vector<GpuStep> rows;
  rows.reserve(variants.size());
  for (const Variant& variant : variants) rows.push_back(variant.row);
  return rows;
}

}  // namespace fuse::bench
