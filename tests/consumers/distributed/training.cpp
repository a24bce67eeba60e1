#include <fusebook/distributed/sharded_checkpoint.h>
#include <fusebook/distributed/sharded_optimizer.h>
#include <fusebook/optim/adamw.h>
#include <fusebook/tensor/tensor_hash.h>

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

int train(Ranks& ranks) {
  std::vector<Tensor> params = {zeros({300, 400}), zeros({400})};
  AdamW opt(params, {.lr = 0.01});
  ShardedOptimizer sharded(ranks, opt);

  double norm = 0;
  for (int step = 0; step < 10; ++step) {
    for (int m = ranks.rank(); m < micro_batches; m += ranks.size()) {
      backward(params, step, m);
      sharded.add_gradients();
    }
    norm = *sharded.step({.divide_by = micro_batches, .max_norm = 1.0}).norm;
  }

  if (ranks.rank() != 0) return 0;
  std::printf("ranks %d: parameters %s, norm %.17g\n", ranks.size(),
              hash_of_bits(params).c_str(), norm);
  std::printf("  rank 0 keeps %zu bytes of states\n", opt.memory().states);
  std::printf(
      "  it sends in a step %lld bytes of gradients and %lld of parameters\n",
      static_cast<long long>(ranks.traffic().gradients) / 10,
      static_cast<long long>(ranks.traffic().parameters) / 10);
  return 0;
}

int main() { return run_ranks(train); }
