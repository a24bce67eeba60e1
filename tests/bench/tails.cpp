#include "bench/tails.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
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
  explicit Tail(std::vector<Tensor> with_gradients)
      : params(std::move(with_gradients)),
        averaged(zeros_like_each(params)),
        adam(params),
        averages(averaged, get_ema_multi_avg_fn()) {}

  void run() {
    scaler.unscale_(adam);
    clip_grad_norm_(params, max_norm);
    scaler.step(adam);
    averages.update(params, {.skip = scaler.found_inf(adam)});
    scaler.update();
  }

  // Gradients stay as they are: the step divides them as it reads them. Their norm
  // is finite when all of them are: no float32 squared overflows as a float64.
  void run_in_registers() {
    const std::vector<TensorList> grads = adam.gradient_lists();
    const Scalar norm = total_norm(grads[0]);
    const Scalar skip = scalar_op(OpCode::ne, norm - norm, 0.0);
    const Scalar scale = scalar_op(
        OpCode::maximum, (norm + Scalar(1e-6)) / Scalar(max_norm), 1.0);
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

// With gradients of their own, which clipping stores.
std::vector<Tensor> copy_of(const CaseModel& model) {
  std::vector<Tensor> params = model.copy();
  for (Tensor& param : params) param.set_grad(param.grad().clone());
  return params;
}

struct Variant {
  std::string name;
  Step step;
};

// Variants that share a tail; the first is the limit, which the others are
// divided by.
struct Set {
  std::vector<Variant> variants;
  bool tells_limit = true;
};

// The fastest of plain loops over what a tail touches. Gradients are read before
// anything is stored: their norm has to be known.
Step loops_over(const Tail& tail, int written) {
  const auto lists = tail.touched();
  const std::vector<std::vector<Tensor>> grads = {lists.back()};
  auto norm = std::make_shared<AccessPattern>(grads, 0);
  auto step = std::make_shared<AccessPattern>(lists, written);
  std::vector<Step> ways;
  for (const auto width : AccessPattern::widths) {
    ways.emplace_back([=] {
      norm->run(width);
      step->run(width);
    });
  }
  const auto times = interleaved(ways, {.min_run_time_s = 0.1});
  const auto fastest = std::min_element(
      times.begin(), times.end(),
      [](const auto& a, const auto& b) { return a.median() < b.median(); });
  return ways[std::size_t(fastest - times.begin())];
}

void warm_up(const Step& step) {
  for (int i = 0; i < 2; ++i) step();
}

Set in_one_launch(const std::vector<Tensor>& params) {
  auto tail = std::make_shared<Tail>(params);
  auto compiled = compile([tail] { tail->run(); }, {.fullgraph = true});
  warm_up(compiled);
  return {{{limit_name, loops_over(*tail, 5)},
           {"compiled", compiled},
           {"bare kernel", [=]() mutable { compiled.relaunch(); }}}};
}

Set in_registers(const std::vector<Tensor>& params) {
  auto tail = std::make_shared<Tail>(params);
  auto compiled =
      compile([tail] { tail->run_in_registers(); }, {.fullgraph = true});
  warm_up(compiled);
  return {{{"limit, gradients kept", loops_over(*tail, 4)},
           {"compiled, in registers", compiled}}};
}

Set pass_by_pass(const std::vector<Tensor>& params) {
  auto tail = std::make_shared<Tail>(params);
  const Step step = [tail] { tail->run(); };
  warm_up(step);
  return {{{limit_name, loops_over(*tail, 5)}, {"pass by pass", step}}, false};
}

void tell_set(const Case& wanted, const Set& set, const Measurement* times) {
  const double limit = times[0].median_us();
  for (std::size_t i = 0; i < set.variants.size(); ++i) {
    if (i == 0 && !set.tells_limit) continue;
    tell({"tail", wanted.name, set.variants[i].name,
          i == 0 ? limit : times[i].median_us(), 0, limit_name, limit});
  }
}

// In turns, so that each is divided by a limit that met the same machine.
void measure(const Case& wanted, const std::vector<Set>& sets) {
  std::vector<Step> steps;
  for (const Set& set : sets) {
    for (const Variant& variant : set.variants) steps.push_back(variant.step);
  }
  const auto times = interleaved(steps);
  std::size_t first = 0;
  for (const Set& set : sets) {
    tell_set(wanted, set, &times[first]);
    first += set.variants.size();
  }
}

using Make = Set (*)(const std::vector<Tensor>& params);
constexpr Make makes[] = {in_one_launch, in_registers, pass_by_pass};

// Lists of a whole model's size: parameters and gradients, five of each tail, and
// the temporaries of an eager step. Tails in turn have the model's own.
constexpr std::int64_t lists_at_once = 2 + 5 * 3 + 3;
constexpr std::int64_t lists_in_turn = 5 + 3;

}  // namespace

void measure_tail(const Case& wanted) {
  const std::int64_t list = bytes_of_a_list(wanted);
  const bool at_once = list * lists_at_once <= most_at_once;
  require_memory(list * (at_once ? lists_at_once : lists_in_turn));
  const CaseModel model(wanted);
  std::vector<Set> sets;
  for (const Make make : makes) {
    sets.push_back(make(at_once ? copy_of(model) : model.params()));
    if (at_once) continue;
    measure(wanted, sets);
    sets.clear();
    empty_cache();
  }
  if (at_once) measure(wanted, sets);
}

}  // namespace fuse::bench
