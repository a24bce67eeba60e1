#include "bench/steps.h"

#include <functional>
#include <memory>
#include <numeric>

#include "bench/case_model.h"
#include "bench/reading.h"
#include "fusebook/bench/adam_by_hand.h"
#include "fusebook/bench/bandwidth.h"
#include "fusebook/bench/benchmark.h"
#include "fusebook/compile/compile.h"
#include "fusebook/device/allocator.h"
#include "fusebook/optim/adam.h"
#include "fusebook/support/available_memory.h"

namespace fuse::bench {
namespace {

using Step = std::function<void()>;
using Tensors = std::vector<Tensor>;

// Loops that only move memory: the fastest of them is the limit.
constexpr const char* limit_prefix = "limit, ";

struct Variant {
  std::string name;
  Step step;
  std::int64_t bytes = 0;  // moved by one step
  const char* divisor = limit_name;
};

// Variants that are there at once, and what a step of the first one touches: the
// lists that it writes, then the gradients.
struct Set {
  std::vector<Variant> variants;
  std::vector<Tensors> touched;
};

// Bytes one call moves, after one that creates the state.
std::int64_t bytes_of(const Step& step) {
  step();
  const std::int64_t before = process_counters().bytes_moved;
  step();
  return process_counters().bytes_moved - before;
}

std::vector<Tensors> touched_by(const Adam& adam, const Tensors& params) {
  std::vector<Tensors> lists(4);
  for (const Tensor& param : params) {
    lists[0].push_back(param);
    lists[1].push_back(adam.state(param, "exp_avg"));
    lists[2].push_back(adam.state(param, "exp_avg_sq"));
    lists[3].push_back(param.grad());
  }
  return lists;
}

Set fused(const CaseModel& model) {
  auto adam = std::make_shared<Adam>(model.params());
  auto compiled = compile([adam] { adam->step(); });
  const std::int64_t bytes = bytes_of(compiled);
  Set set;
  set.touched = touched_by(*adam, model.params());
  set.variants.push_back({"compiled", compiled, bytes});
  set.variants.push_back(
      {"bare kernel", [compiled]() mutable { compiled.relaunch(); }, bytes});
  auto hand = std::make_shared<AdamByHand>(model.params());
  set.variants.push_back({"by hand", [hand] { hand->step(); }, bytes});
  return set;
}

Set interpreted(const CaseModel& model) {
  auto adam = std::make_shared<Adam>(model.params());
  const Step step =
      compile([adam] { adam->step(); }, {.backend = Backend::interpreted});
  const std::int64_t bytes = bytes_of(step);
  return {{{"interpreted", step, bytes}}, touched_by(*adam, model.params())};
}

Set eager(const CaseModel& model, const char* name, bool foreach) {
  auto adam =
      std::make_shared<Adam>(model.params(), AdamOptions{.foreach = foreach});
  const Step step = [adam] { adam->step(); };
  const std::int64_t bytes = bytes_of(step);
  return {{{name, step, bytes}}, touched_by(*adam, model.params())};
}

Set foreach (const CaseModel& model) { return eager(model, "foreach", true); }

Set tensor_by_tensor(const CaseModel& model) {
  return eager(model, "tensor by tensor", false);
}

// Half of the bytes, and a rounding after each operation, or before each store.
Set reduced(const CaseModel& model, DType dtype, bool opmath) {
  auto adam = std::make_shared<Adam>(model.copy(dtype));
  adam->use_opmath(opmath);
  const Step step = compile([adam] { adam->step(); });
  const std::string name = std::string("compiled, ") + name_of(dtype);
  Set set;
  set.variants.push_back({opmath ? name + ", opmath" : name, step,
                          bytes_of(step), "limit of float32"});
  set.touched.resize(4);
  for (const Tensor& param : model.params()) {
    set.touched[0].push_back(param);
    set.touched[1].push_back(zeros_like(param));
    set.touched[2].push_back(zeros_like(param));
    set.touched[3].push_back(param.grad());
  }
  return set;
}

template <DType dtype, bool opmath>
Set reduced(const CaseModel& model) {
  return reduced(model, dtype, opmath);
}

using Make = Set (*)(const CaseModel& model);
constexpr Make makes[] = {fused,
                          interpreted,
                          foreach,
                          tensor_by_tensor,
                          reduced<DType::bfloat16, false>,
                          reduced<DType::bfloat16, true>,
                          reduced<DType::float16, false>,
                          reduced<DType::float16, true>};

void add_loops(Set& set, const std::shared_ptr<AccessPattern>& pattern,
               const std::string& where) {
  using Width = AccessPattern::Width;
  constexpr const char* names[] = {"256-bit", "512-bit", "512-bit, ahead"};
  for (const Width width : AccessPattern::widths) {
    const std::string loop = names[std::size_t(width)];
    set.variants.push_back({limit_prefix + loop + where,
                            [=] { pattern->run(width); }, pattern->bytes()});
  }
}

// The limit: plain loops over the very memory of the step, and where there is
// room also over memory that is laid out better.
void add_limits(Set& set, const Case& wanted, bool with_own_memory) {
  add_loops(set, std::make_shared<AccessPattern>(set.touched, 3), "");
  if (!with_own_memory) return;
  constexpr auto staggered = AccessPattern::Bases::staggered;
  add_loops(set, std::make_shared<AccessPattern>(wanted.sizes, 4, 3, staggered),
            ", staggered");
}

// The limit's loops do the same work: the fastest is what the machine can do.
std::size_t fastest_limit(const std::vector<Variant>& variants,
                          const std::vector<Measurement>& times) {
  std::size_t best = variants.size();
  for (std::size_t i = 0; i < variants.size(); ++i) {
    if (!variants[i].name.starts_with(limit_prefix)) continue;
    const bool first = best == variants.size();
    if (first || times[i].median() < times[best].median()) best = i;
  }
  return best;
}

// In turns, so that each is divided by a limit that met the same machine.
void measure(const Case& wanted, const Set& set, bool tell_limits) {
  std::vector<Step> steps;
  for (const Variant& variant : set.variants) steps.push_back(variant.step);
  const auto times = interleaved(steps);
  const std::size_t limit = fastest_limit(set.variants, times);
  const double limit_us = times[limit].median_us();
  if (tell_limits) {
    tell({"step", wanted.name, limit_name, limit_us, set.variants[limit].bytes,
          limit_name, limit_us});
  }
  for (std::size_t i = 0; i < set.variants.size(); ++i) {
    const Variant& variant = set.variants[i];
    if (!tell_limits && variant.name.starts_with(limit_prefix)) continue;
    tell({"step", wanted.name, variant.name, times[i].median_us(),
          variant.bytes, variant.divisor, limit_us});
  }
}

// Lists of a whole model's size: parameters and gradients; two averages for each
// float32 optimizer; four of half the size for each other one; what the limits
// move; the temporaries of an eager step.
constexpr std::int64_t lists_at_once = 2 + 5 * 2 + 4 * 2 + 2 * 2 + 4 + 2;
// One set after the other: the largest has one optimizer and temporaries, or two
// optimizers.
constexpr std::int64_t lists_in_turn = 2 + 2 + 2 + 1;

void measure_at_once(const Case& wanted) {
  const CaseModel model(wanted);
  Set all;
  for (const Make make : makes) {
    Set set = make(model);
    if (all.touched.empty()) all.touched = std::move(set.touched);
    for (Variant& variant : set.variants) {
      all.variants.push_back(std::move(variant));
    }
  }
  add_limits(all, wanted, true);
  measure(wanted, all, true);
}

// What one set held is given back before the next one is made.
void measure_one_by_one(const Case& wanted) {
  const CaseModel model(wanted);
  bool is_first = true;
  for (const Make make : makes) {
    {
      Set set = make(model);
      add_limits(set, wanted, false);
      measure(wanted, set, is_first);
    }
    empty_cache();
    is_first = false;
  }
}

}  // namespace

std::int64_t bytes_of_a_list(const Case& wanted) {
  return std::accumulate(wanted.sizes.begin(), wanted.sizes.end(),
                         std::int64_t(0)) *
         std::int64_t(sizeof(float));
}

void measure_steps(const Case& wanted) {
  const std::int64_t list = bytes_of_a_list(wanted);
  const bool at_once = list * lists_at_once <= most_at_once;
  require_memory(list * (at_once ? lists_at_once : lists_in_turn));
  if (at_once) {
    measure_at_once(wanted);
  } else {
    measure_one_by_one(wanted);
  }
  tell({"memory", wanted.name, peak_name, 0, peak_resident_memory()});
}

}  // namespace fuse::bench
