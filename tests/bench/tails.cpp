#include "bench/tails.h"

#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "bench/case_model.h"
#include "bench/reading.h"
#include "bench/steps.h"
#include "fusebook/amp/grad_scaler.h"
#include "fusebook/bench/bandwidth.h"
#include "fusebook/bench/benchmark.h"
#include "fusebook/compile/compile.h"
#include "fusebook/device/allocator.h"
#include "fusebook/foreach/clip_grad.h"
#include "fusebook/foreach/reductions.h"
#include "fusebook/optim/adam.h"
#include "fusebook/support/available_memory.h"
#include "fusebook/swa_utils/averaged_model.h"

namespace fuse::bench {
namespace {

using Step = std::function<void()>;

// A norm that is never reached, so that gradients do not fade from step to step.
constexpr double max_norm = 1e30;

std::vector<Tensor> zeros_like_each(const std::vector<Tensor>& params) {
  std::vector<Tensor> zeros;
  for (const Tensor& each : params) zeros.push_back(zeros_like(each));
  return zeros;
}

// What a training loop has besides its model. The scale is 1: gradients are the
// same in each step.
struct Tail {
  explicit Tail(const CaseModel& model)
      : params(model.copy()),
        averaged(zeros_like_each(params)),
        adam(params),
        averages(averaged, get_ema_multi_avg_fn()) {
    for (std::size_t i = 0; i < params.size(); ++i) {
      params[i].set_grad(model.params()[i].grad().clone());
    }
  }

  void run() {
    scaler.unscale_(adam);
    clip_grad_norm_(params, max_norm);
    scaler.step(adam);
    averages.update(params, {.skip = scaler.found_inf(adam)});
    scaler.update();
  }

  // Gradients stay as they are: the step divides them as it reads them.
  void run_in_registers() {
    const std::vector<TensorList> grads = adam.gradient_lists();
    const Scalar skip = 1.0 - all_finite(grads[0]);
    const Scalar norm = total_norm(grads[0]) + Scalar(1e-6);
    const Scalar scale =
        scalar_op(OpCode::maximum, norm / Scalar(max_norm), 1.0);
    adam.step({.grad_scale = scale, .skip = skip});
    averages.update(params, {.skip = skip});
  }

  // Lists as the limit's loops have them; the first `written` are stored.
  std::vector<std::vector<Tensor>> touched() const {
    std::vector<std::vector<Tensor>> lists(5);
    for (std::size_t i = 0; i < params.size(); ++i) {
      lists[0].push_back(params[i]);
      lists[1].push_back(adam.state(params[i], "exp_avg"));
      lists[2].push_back(adam.state(params[i], "exp_avg_sq"));
      lists[3].push_back(averaged[i]);
      lists[4].push_back(params[i].grad());
    }
    return lists;
  }

  std::vector<Tensor> params;
  std::vector<Tensor> averaged;
  Adam adam;
  GradScaler scaler{{.init_scale = 1, .growth_interval = 1'000'000'000}};
  ParameterAverages averages;
};

struct Variant {
  std::string name;
  Step step;
  std::size_t limit = 0;  // the variant that it is divided by
  // How many times as long the limit is: gradients are read once more than its
  // loops do.
  double more = 1;
};

constexpr double clipped_bytes = 44.0 / 40;
constexpr double kept_bytes = 40.0 / 36;

}  // namespace

void measure_tail(const Case& wanted) {
  const std::int64_t list =
      std::accumulate(wanted.sizes.begin(), wanted.sizes.end(),
                      std::int64_t(0)) *
      std::int64_t(sizeof(float));
  require_memory(list * 20);
  const CaseModel model(wanted);
  auto whole = std::make_shared<Tail>(model);
  auto kept = std::make_shared<Tail>(model);
  auto apart = std::make_shared<Tail>(model);
  auto compiled = compile([whole] { whole->run(); }, {.fullgraph = true});
  auto registers =
      compile([kept] { kept->run_in_registers(); }, {.fullgraph = true});
  for (int i = 0; i < 2; ++i) {
    compiled();
    registers();
    apart->run();
  }
  auto all_stored = std::make_shared<AccessPattern>(whole->touched(), 5);
  auto four_stored = std::make_shared<AccessPattern>(kept->touched(), 4);
  const std::vector<Variant> variants = {
      {limit_name, [=] { all_stored->run(); }, 0, clipped_bytes},
      {"limit, gradients kept", [=] { four_stored->run(); }, 1, kept_bytes},
      {"compiled", compiled, 0, clipped_bytes},
      {"bare kernel", [=]() mutable { compiled.relaunch(); }, 0, clipped_bytes},
      {"compiled, in registers", registers, 1, kept_bytes},
      {"pass by pass", [=] { apart->run(); }, 0, clipped_bytes},
  };
  std::vector<Step> steps;
  for (const Variant& variant : variants) steps.push_back(variant.step);
  const auto times = interleaved(steps);
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const Variant& variant = variants[i];
    const double limit = times[variant.limit].median_us() * variant.more;
    const bool is_limit = i == variant.limit;
    tell({"tail", wanted.name, variant.name,
          is_limit ? limit : times[i].median_us(), 0, limit_name, limit});
  }
}

}  // namespace fuse::bench
