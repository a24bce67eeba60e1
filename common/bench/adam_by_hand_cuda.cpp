#include "fusebook/bench/adam_by_hand_cuda.h"

#include <algorithm>

#include "fusebook/reports/counters.h"

namespace fuse {
namespace {

// The same as in adam_by_hand.cu.
constexpr std::size_t most_tensors = 64;
struct AdamTensor {
  void* param;
  void* exp_avg;
  void* exp_avg_sq;
  const void* grad;
  long long numel;
};
struct AdamTensors {
  AdamTensor at[most_tensors];
};

constexpr unsigned block = 256;
constexpr long long pack = 4;

}  // namespace

void AdamByHandOnGpu::step(const std::vector<Tensor>& params,
                           const std::vector<Tensor>& exp_avgs,
                           const std::vector<Tensor>& exp_avg_sqs,
                           const AdamNumbers& numbers) const {
  // [launch]
  for (std::size_t first = 0; first < params.size(); first += most_tensors) {
    const std::size_t count = std::min(most_tensors, params.size() - first);
    AdamTensors tensors = {};
    long long longest = 0;
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t i = first + k;
      check_defined(params[i], "a parameter");
      const Tensor grad = params[i].grad();
      check_defined(grad, "a gradient");
      tensors.at[k] = {params[i].raw_data(), exp_avgs[i].raw_data(),
                       exp_avg_sqs[i].raw_data(), grad.raw_data(),
                       params[i].numel()};
      longest = std::max<long long>(longest, params[i].numel());
    }
    if (longest == 0) continue;
    // As many blocks as fit on the device, spread over the tensors.
    const long long wanted = (longest + block * pack - 1) / (block * pack);
    const long long room =
        std::max<long long>(1, kernel_.resident_blocks() / (long long)(count));
    kernel_.launch({unsigned(std::min(wanted, room)), unsigned(count), 1},
                   {block, 1, 1}, tensors, numbers);
    add_to_process({.launches = 1});
  }
  // [launch]
}

}  // namespace fuse
