#include <fusebook/distributed/sharded_checkpoint.h>
#include <fusebook/distributed/sharded_optimizer.h>
#include <fusebook/optim/adamw.h>

#include <cstdint>
#include <cstdio>
#include <vector>

using namespace fuse;

constexpr int micro_batches = 7;

// Stands for a backward pass: any gradients that depend on step and batch.
void backward(std::vector<Tensor>& params, int step, int batch) {
  for (Tensor& param : params) {
    Tensor grad = empty_like(param);
    float* const g = grad.data<float>();
    for (std::int64_t i = 0; i < grad.numel(); ++i) {
      g[i] =
          float((i * 7919 + step * 104729 + batch * 1299709) % 2003) / 1001 - 1;
    }
    param.set_grad(grad);
  }
}

std::uint64_t hash_of(const std::vector<Tensor>& params) {
  std::uint64_t hash = 14695981039346656037U;
  for (const Tensor& param : params) {
    const auto* const bytes =
        static_cast<const unsigned char*>(param.address(false));
    for (std::size_t i = 0; i < param.nbytes(); ++i) {
      hash = (hash ^ bytes[i]) * 1099511628211U;
    }
  }
  return hash;
}

int train(Ranks& ranks) {
  std::vector<Tensor> params = {zeros({300, 400}), zeros({400})};
  AdamW opt(params, {.lr = 0.01});
  ShardedOptimizer sharded(ranks, opt);

  const RankTraffic before = ranks.traffic();
  double norm = 0;
  for (int step = 0; step < 10; ++step) {
    for (int m = ranks.rank(); m < micro_batches; m += ranks.size()) {
      backward(params, step, m);
      sharded.add_gradients();
    }
    norm = *sharded.step({.divide_by = micro_batches, .max_norm = 1.0}).norm;
  }
  const RankTraffic after = ranks.traffic();

  if (ranks.rank() != 0) return 0;
  std::printf("ranks %d: parameters %016llx, norm %.17g\n", ranks.size(),
              static_cast<unsigned long long>(hash_of(params)), norm);
  std::printf("  rank 0 keeps %zu bytes of states\n", opt.memory().states);
  std::printf(
      "  it sends in a step %lld bytes of gradients and %lld of parameters\n",
      static_cast<long long>(after.gradients - before.gradients) / 10,
      static_cast<long long>(after.parameters - before.parameters) / 10);
  return 0;
}

int main() { return run_ranks(train); }
