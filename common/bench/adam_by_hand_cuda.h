#pragma once

#include <memory>
#include <vector>

#include "fusebook/device/cuda_kernel.h"
#include "fusebook/tensor/tensor.h"

namespace fuse {

/// The text of adam_by_hand.cu, whose kernel is `adam_by_hand`.
extern const char* const adam_by_hand_text;

/// Values shared by all elements of one step; the same as in adam_by_hand.cu.
struct AdamNumbers {
  float weight1;  ///< 1 - beta1
  float beta2;
  float weight2;    ///< 1 - beta2
  float step_size;  ///< -lr / (1 - beta1^step)
  float correction2_sqrt;
  float eps;
};

/// The hand-written kernel on a device, ready to be launched.
class AdamByHandOnGpu {
 public:
  explicit AdamByHandOnGpu(const Device& device)
      : kernel_(device, adam_by_hand_text, "adam_by_hand") {}

  /// One update of contiguous float32 parameters with gradients: one launch per
  /// 64 of them. The lists are parallel.
  void step(const std::vector<Tensor>& params,
            const std::vector<Tensor>& exp_avgs,
            const std::vector<Tensor>& exp_avg_sqs,
            const AdamNumbers& numbers) const;

  const CudaKernel& kernel() const { return kernel_; }

 private:
  CudaKernel kernel_;
};

}  // namespace fuse
