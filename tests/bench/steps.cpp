#include "bench/steps.h"

#include <functional>
#include <memory>
#include <numeric>

#include "allocator.h"
#include "bandwidth.h"
#include "bench/case_model.h"
#include "bench/reading.h"
#include "benchmark.h"
#include "compile.h"
#include "optim/adam.h"
#include "optim/adam_by_hand.h"
#include "random.h"

namespace fuse::bench {
namespace {

using Step = std::function<void()>;

// Loops that only move memory: the fastest of them is the limit.
constexpr const char* limit_prefix = "limit, ";

struct Variant {
  std::string name;
  Step step;
  std::int64_t bytes = 0;  // moved by one step
};

// Bytes one call moves, after one that creates the state.
std::int64_t bytes_of(const Step& step) {
  step();
  const std::int64_t before = process_counters().bytes_moved;
  step();
  return process_counters().bytes_moved - before;
}

void add_eager(std::vector<Variant>& variants, const char* name,
               const CaseModel& model, bool foreach) {
  auto adam =
      std::make_shared<Adam>(model.copy(), AdamOptions{.foreach = foreach});
  const Step step = [adam] { adam->step(); };
  variants.push_back({name, step, bytes_of(step)});
}

void add_fused(std::vector<Variant>& variants, const CaseModel& model) {
  auto adam = std::make_shared<Adam>(model.copy());
  auto fused = compile([adam] { adam->step(); });
  const Step step = fused;
  const std::int64_t bytes = bytes_of(step);
  variants.push_back({"compiled", step, bytes});
  variants.push_back(
      {"bare kernel", [fused]() mutable { fused.relaunch(); }, bytes});
}

// Half of the bytes, and a rounding after each operation. Compare with
// "compiled": the limit is that of float32.
void add_reduced(std::vector<Variant>& variants, const CaseModel& model,
                 DType dtype) {
  auto adam = std::make_shared<Adam>(model.copy(dtype));
  const Step step = compile([adam] { adam->step(); });
  variants.push_back(
      {std::string("compiled, ") + name_of(dtype), step, bytes_of(step)});
}

void add_interpreted(std::vector<Variant>& variants, const CaseModel& model) {
  auto adam = std::make_shared<Adam>(model.copy());
  const Step step =
      compile([adam] { adam->step(); }, {.backend = Backend::interpreted});
  variants.push_back({"interpreted", step, bytes_of(step)});
}

void add_limits(std::vector<Variant>& variants, const Case& wanted) {
  using Bases = AccessPattern::Bases;
  using Width = AccessPattern::Width;
  for (const Bases bases : {Bases::allocated, Bases::staggered}) {
    auto pattern = std::make_shared<AccessPattern>(wanted.sizes, 4, 3, bases);
    const std::string end = bases == Bases::staggered ? ", staggered" : "";
    for (const Width width : {Width::bytes32, Width::bytes64}) {
      const char* const bits = width == Width::bytes32 ? "256-bit" : "512-bit";
      variants.push_back({limit_prefix + std::string(bits) + end,
                          [=] { pattern->run(width); }, pattern->bytes()});
    }
  }
}

std::vector<Variant> variants_of(const Case& wanted) {
  const CaseModel model(wanted);
  std::vector<Variant> variants;
  add_limits(variants, wanted);
  auto hand = std::make_shared<AdamByHand>(model.copy());
  variants.push_back({"by hand", [hand] { hand->step(); }, variants[0].bytes});
  add_fused(variants, model);
  add_reduced(variants, model, DType::bfloat16);
  add_reduced(variants, model, DType::float16);
  add_interpreted(variants, model);
  add_eager(variants, "foreach", model, true);
  add_eager(variants, "tensor by tensor", model, false);
  return variants;
}

// The limit's loops do the same work: the fastest is what the machine can do.
std::size_t fastest_limit(const std::vector<Variant>& variants,
                          const std::vector<Measurement>& times) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < variants.size(); ++i) {
    if (!variants[i].name.starts_with(limit_prefix)) continue;
    if (times[i].median() < times[best].median()) best = i;
  }
  return best;
}

// Parameters and two averages of each variant, the gradients, what the limits
// move, the temporaries of a list, and four lists of halves for two types.
void require_memory_for(const Case& wanted) {
  constexpr std::int64_t arrays = 5 * 3 + 2 + 2 * 4 + 2 + 2 * 4 / 2;
  const std::int64_t elements = std::accumulate(
      wanted.sizes.begin(), wanted.sizes.end(), std::int64_t(0));
  require_memory(elements * arrays * std::int64_t(sizeof(float)));
}

}  // namespace

void measure_steps(const Case& wanted) {
  require_memory_for(wanted);
  const std::vector<Variant> variants = variants_of(wanted);
  std::vector<Step> steps;
  for (const Variant& variant : variants) steps.push_back(variant.step);
  const auto times = interleaved(steps);
  const std::size_t limit = fastest_limit(variants, times);
  const double limit_us = times[limit].median_us();
  tell({"step", wanted.name, limit_name, limit_us, variants[limit].bytes,
        limit_name, limit_us});
  for (std::size_t i = 0; i < variants.size(); ++i) {
    tell({"step", wanted.name, variants[i].name, times[i].median_us(),
          variants[i].bytes, limit_name, limit_us});
  }
}

}  // namespace fuse::bench
