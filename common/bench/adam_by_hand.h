#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fusebook/bench/adam_by_hand_cuda.h"
#include "fusebook/optim/adam.h"
#include "fusebook/tensor/tensor.h"

namespace fuse {

/// Adam as one hand-written loop: the baseline for a compiled step. It performs
/// the same operations in the same order as `Adam`, so the bits are the same.
/// float32 parameters with plain-number options; no weight decay, amsgrad or
/// maximize. On a GPU it is the kernel of adam_by_hand.cu.
class AdamByHand {
 public:
  /// Throws Error for unsupported options or dtypes.
  explicit AdamByHand(std::vector<Tensor> params,
                      const AdamOptions& options = {});

  /// One update of all parameters. Throws Error if one has no gradient.
  void step();

 private:
  void step_on_host(const AdamNumbers& numbers);

  std::vector<Tensor> params_;
  std::vector<Tensor> exp_avgs_;
  std::vector<Tensor> exp_avg_sqs_;
  std::vector<std::int64_t> starts_;
  std::int64_t total_ = 0;
  std::int64_t steps_ = 0;
  double lr_;
  double beta1_;
  double beta2_;
  double eps_;
  std::shared_ptr<AdamByHandOnGpu> on_gpu_;
};

}  // namespace fuse
