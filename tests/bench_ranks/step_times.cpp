#include "bench_ranks/step_times.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "bench/case_model.h"
#include "bench_ranks/together.h"
#include "fusebook/bench/bandwidth.h"
#include "fusebook/bench/benchmark.h"
#include "fusebook/distributed/sharded_optimizer.h"
#include "fusebook/optim/adam.h"
#include "fusebook/prelude/sums.h"

namespace fuse::bench {
namespace {

std::vector<DType> dtypes_of(const Case& wanted) {
  return std::vector<DType>(wanted.sizes.size(), DType::float32);
}

// A training without a backward pass: its gradients are always the same.
class Training {
 public:
  Training(Ranks& ranks, const Case& wanted, const PlannedStep& plan)
      : ranks_(ranks),
        plan_(plan),
        model_(wanted),
        adam_(model_.params()),
        sharded_(ranks, adam_) {
    for (Tensor each : model_.params()) {
      grads_.push_back(each.grad());
      each.set_grad(Tensor());
    }
  }

  // As a backward pass does, outside of the step.
  void make_gradients() {
    for (std::int64_t m = ranks_.rank(); m < plan_.gradients(ranks_.size());
         m += ranks_.size()) {
      auto& fresh = fresh_.emplace_back();
      for (const Tensor& each : grads_) fresh.push_back(each.clone());
    }
  }

  void step() {
    for (; !fresh_.empty(); fresh_.pop_back()) {
      for (std::size_t p = 0; p < grads_.size(); ++p) {
        Tensor param = model_.params()[p];
        param.set_grad(std::move(fresh_.back()[p]));
      }
      sharded_.add_gradients();
    }
    sharded_.step();
  }

  const std::vector<Share>& shares() const { return sharded_.shares(); }

 private:
  Ranks& ranks_;
  PlannedStep plan_;
  CaseModel model_;
  Adam adam_;
  ShardedOptimizer sharded_;
  std::vector<Tensor> grads_;
  std::vector<std::vector<Tensor>> fresh_;  // of the next step
};

}  // namespace

std::int64_t bytes_per_element(std::int64_t gradients) {
  constexpr std::int64_t updated = 3;  // the parameter and two averages
  return (2 * updated + gradients) * std::int64_t(sizeof(float));
}

std::vector<Share> shares_of(const Case& wanted, int ranks) {
  std::vector<Shareable> sizes;
  for (const std::int64_t size : wanted.sizes) {
    sizes.push_back({size, sum_chunk_size});
  }
  return make_shares(sizes, ranks);
}

std::int64_t largest_share(const std::vector<Share>& shares, int ranks) {
  std::vector<std::int64_t> owned(std::size_t(ranks), 0);
  for (const Share& each : shares) owned[std::size_t(each.owner)] += each.count;
  return *std::max_element(owned.begin(), owned.end());
}

double measure_memory(Ranks& ranks, const Case& wanted, int rounds) {
  std::vector<std::int64_t> own;
  for (const Share& each : shares_of(wanted, ranks.size())) {
    if (each.owner == ranks.rank()) own.push_back(each.count);
  }
  const AccessPattern pattern(own);
  double best = std::numeric_limits<double>::infinity();
  for (const auto width : AccessPattern::widths) {
    std::vector<double> times;
    pattern.run(width);
    for (int round = 0; round < rounds; ++round) {
      times.push_back(seconds_together(ranks, 5, [&] { pattern.run(width); }));
    }
    best = std::min(best, Measurement(1, times).median_us());
  }
  return double(pattern.bytes()) / best;
}

StepTime measure_step(Ranks& ranks, const Case& wanted, const PlannedStep& plan,
                      int rounds, double memory_bytes_per_us) {
  Training training(ranks, wanted, plan);
  const StepTraffic planned(training.shares(), dtypes_of(wanted), ranks.size());
  StepTime found;
  found.ranks = ranks.size();
  found.plan = plan;
  std::vector<double> times;
  training.make_gradients();
  training.step();  // compiles
  for (int round = 0; round < rounds; ++round) {
    training.make_gradients();
    begin_together(ranks);
    const RankTraffic before = ranks.traffic();
    const double begin = steady_seconds();
    training.step();
    times.push_back(steady_seconds() - begin);
    found.sent = ranks.traffic() - before;
    if (found.sent != planned.of(plan, ranks.rank())) {
      throw Error(fmt::format(
          "rank {} of {} sent {} bytes of gradients and {} of parameters in a "
          "step, which is not what was planned",
          ranks.rank(), ranks.size(), found.sent.gradients,
          found.sent.parameters));
    }
  }
  found.us = Measurement(1, times).median_us();
  found.owned = largest_share(training.shares(), ranks.size());
  found.limit_us =
      double(found.owned * bytes_per_element(plan.gradients(ranks.size()))) /
      memory_bytes_per_us;
  return found;
}

}  // namespace fuse::bench
