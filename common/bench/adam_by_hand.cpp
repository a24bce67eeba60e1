#include "fusebook/bench/adam_by_hand.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "fusebook/prelude/math.h"
#include "fusebook/runtime/parallel_for.h"
#include "fusebook/support/error.h"

namespace fuse {
namespace {

// Parts are split at cache lines, and none is smaller than a few kilobytes.
constexpr std::int64_t line_length = 16;
constexpr std::int64_t least_elements = 2048;

struct Arrays {
  float* param;
  float* exp_avg;
  float* exp_avg_sq;
  const float* grad;
};

using Update = void (*)(const Arrays&, const AdamNumbers&, std::int64_t begin,
                        std::int64_t end);

[[gnu::always_inline]] inline void update(const Arrays& arrays,
                                          const AdamNumbers& n,
                                          std::int64_t begin,
                                          std::int64_t end) {
  float* const __restrict__ param = arrays.param;
  float* const __restrict__ exp_avg = arrays.exp_avg;
  float* const __restrict__ exp_avg_sq = arrays.exp_avg_sq;
  const float* const __restrict__ grad = arrays.grad;
  for (std::int64_t i = begin; i < end; ++i) {
    const float g = grad[i];
    const float m = exp_avg[i] + n.weight1 * (g - exp_avg[i]);
    const float v = exp_avg_sq[i] * n.beta2 + n.weight2 * g * g;
    const float denominator = std::sqrt(v) / n.correction2_sqrt + n.eps;
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
    param[i] = param[i] + n.step_size * m / denominator;
  }
}

void update_plain(const Arrays& arrays, const AdamNumbers& n,
                  std::int64_t begin, std::int64_t end) {
  update(arrays, n, begin, end);
}

#if defined(__x86_64__) && defined(__GNUC__)
[[gnu::target("avx2")]] void update_avx2(const Arrays& arrays,
                                         const AdamNumbers& n,
                                         std::int64_t begin, std::int64_t end) {
  update(arrays, n, begin, end);
}

Update best_update() {
  return __builtin_cpu_supports("avx2") != 0 ? update_avx2 : update_plain;
}
#else
Update best_update() { return update_plain; }
#endif

}  // namespace

AdamByHand::AdamByHand(std::vector<Tensor> params, const AdamOptions& options)
    : params_(std::move(params)),
      lr_(options.lr.value()),
      beta1_(options.betas[0].value()),
      beta2_(options.betas[1].value()),
      eps_(options.eps.value()) {
  options.validate();
  // Only one branch of lerp is implemented.
  if (options.amsgrad || options.maximize || beta1_ <= 0.5 ||
      options.weight_decay.value() != 0) {
    throw Error(
        "the hand-written Adam requires betas[0] above 0.5 and supports "
        "neither weight decay, amsgrad nor maximize; use Adam for those");
  }
  for (const Tensor& param : params_) {
    check_defined(param, "a parameter");
    if (param.dtype() != DType::float32) {
      throw Error("the hand-written Adam supports only float32 parameters");
    }
    if (!param.is_contiguous()) {
      throw Error("the hand-written Adam supports only contiguous parameters");
    }
    exp_avgs_.push_back(zeros_like(param));
    exp_avg_sqs_.push_back(zeros_like(param));
    starts_.push_back(total_);
    total_ += param.numel();
  }
  if (params_.empty() || params_[0].device().is_cpu()) return;
  on_gpu_ = std::make_shared<AdamByHandOnGpu>(params_[0].device());
}

void AdamByHand::step() {
  if (params_.empty() && total_ > 0) {
    refuse_moved_from(std::source_location::current(), "the optimizer");
  }
  for (std::size_t i = 0; i < params_.size(); ++i) {
    const Tensor grad = params_[i].grad();
    if (!grad.defined()) {
      throw Error(fmt::format(
          "parameter {} has no gradient; call backward() first", i));
    }
    if (!grad.is_contiguous()) {
      throw Error("the hand-written Adam supports only contiguous gradients");
    }
  }
  ++steps_;
  const double correction1 = 1.0 - device::math::power(beta1_, steps_);
  const double correction2 = 1.0 - device::math::power(beta2_, steps_);
  const AdamNumbers numbers = {
      float(1.0 - beta1_),           float(beta2_),
      float(1.0 - beta2_),           float(-(lr_ / correction1)),
      float(std::sqrt(correction2)), float(eps_)};
  if (on_gpu_ != nullptr) {
    on_gpu_->step(params_, exp_avgs_, exp_avg_sqs_, numbers);
  } else {
    step_on_host(numbers);
  }
}

void AdamByHand::step_on_host(const AdamNumbers& numbers) {
  std::vector<Arrays> arrays;
  arrays.reserve(params_.size());
  for (std::size_t i = 0; i < params_.size(); ++i) {
    arrays.push_back({params_[i].data<float>(), exp_avgs_[i].data<float>(),
                      exp_avg_sqs_[i].data<float>(),
                      params_[i].grad().data<float>()});
  }
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), begin);
    auto i = std::size_t(after - starts_.begin()) - 1;
    for (; i < arrays.size() && starts_[i] < end; ++i) {
      best_update()(arrays[i], numbers,
                    std::max<std::int64_t>(begin - starts_[i], 0),
                    std::min(end - starts_[i], params_[i].numel()));
    }
  };
  const std::int64_t lines = (total_ + line_length - 1) / line_length;
  parallel_for(lines, least_elements / line_length,
               [&](std::int64_t begin, std::int64_t end) {
                 if (begin == end) return;
                 run(begin * line_length, std::min(end * line_length, total_));
               });
}

}  // namespace fuse
