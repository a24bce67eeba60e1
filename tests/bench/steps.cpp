#include "bench/steps.h"

#include <functional>
#include <memory>

#include "bandwidth.h"
#include "benchmark.h"
#include "compile.h"
#include "optim/adam.h"
#include "optim/adam_by_hand.h"
#include "random.h"

namespace fuse::bench {
namespace {

using Step = std::function<void()>;

struct Variant {
  std::string name;
  Step step;
  std::int64_t bytes = 0;  // moved by one step
};

// Parameters of a case with gradients that all variants share.
class Model {
 public:
  explicit Model(const Case& wanted) {
    Generator generator(0);
    for (const std::int64_t size : wanted.sizes) {
      params_.push_back(rand({size}, generator));
      grads_.push_back(rand({size}, generator));
    }
  }

  std::vector<Tensor> copy() const {
    std::vector<Tensor> copies;
    for (std::size_t i = 0; i < params_.size(); ++i) {
      copies.push_back(params_[i].clone());
      copies.back().set_grad(grads_[i]);
    }
    return copies;
  }

 private:
  std::vector<Tensor> params_;
  std::vector<Tensor> grads_;
};

// Bytes one call moves, after one that creates the state.
std::int64_t bytes_of(const Step& step) {
  step();
  const std::int64_t before = process_counters().bytes_moved;
  step();
  return process_counters().bytes_moved - before;
}

Variant eager(const char* name, const Model& model, bool foreach) {
  auto adam =
      std::make_shared<Adam>(model.copy(), AdamOptions{.foreach = foreach});
  const Step step = [adam] { adam->step(); };
  return {name, step, bytes_of(step)};
}

Variant fused(const char* name, const Model& model, Backend backend) {
  auto adam = std::make_shared<Adam>(model.copy());
  const Step step = compile([adam] { adam->step(); }, {.backend = backend});
  return {name, step, bytes_of(step)};
}

Variant by_hand(const Model& model, std::int64_t bytes) {
  auto adam = std::make_shared<AdamByHand>(model.copy());
  return {"by hand", [adam] { adam->step(); }, bytes};
}

Variant limit(const Case& wanted) {
  auto pattern = std::make_shared<AccessPattern>(wanted.sizes);
  return {"limit", [pattern] { pattern->run(); }, pattern->bytes()};
}

std::vector<Variant> variants_of(const Case& wanted) {
  const Model model(wanted);
  std::vector<Variant> variants = {limit(wanted)};
  variants.push_back(by_hand(model, variants[0].bytes));
  variants.push_back(fused("compiled", model, Backend::compiled));
  variants.push_back(fused("interpreted", model, Backend::interpreted));
  variants.push_back(eager("foreach", model, true));
  variants.push_back(eager("op by op", model, false));
  return variants;
}

}  // namespace

std::vector<Case> all_cases() {
  const auto same = [](std::size_t count, std::int64_t size) {
    return std::vector<std::int64_t>(count, size);
  };
  return {{"10 x 1024 x 1024", same(10, 1024 * 1024)},
          {"1000 x 64", same(1000, 64)},
          {"10000 x 64", same(10000, 64)},
          {"10000 x 1024", same(10000, 1024)}};
}

std::vector<Row> measure_steps(const Case& wanted) {
  const std::vector<Variant> variants = variants_of(wanted);
  std::vector<Step> steps;
  for (const Variant& variant : variants) steps.push_back(variant.step);
  const auto times = interleaved(steps);
  std::vector<Row> rows;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const double us = times[i].median_us();
    rows.push_back({wanted.name, variants[i].name, us,
                    us / times[0].median_us(),
                    double(variants[i].bytes) / us / 1e3});
  }
  return rows;
}

}  // namespace fuse::bench
