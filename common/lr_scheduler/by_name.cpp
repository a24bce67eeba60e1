#include "fusebook/lr_scheduler/by_name.h"

#include <fmt/core.h>

#include "fusebook/lr_scheduler/all.h"
#include "fusebook/support/error.h"
#include "fusebook/support/join.h"
#include "fusebook/support/number_text.h"

namespace fuse {
namespace {

using Made = std::unique_ptr<LRScheduler>;

struct NamedScheduler {
  const char* name;
  Made (*make)(Optimizer& optimizer, std::int64_t steps);
};

std::vector<double> rates(Optimizer& optimizer, double factor) {
  std::vector<double> all;
  for (std::size_t g = 0; g < optimizer.group_count(); ++g) {
    all.push_back(factor * optimizer.group(g)["lr"].value());
  }
  return all;
}

bool has_momentum(Optimizer& optimizer) {
  ParamGroup& group = optimizer.group(0);
  return group.find("betas[0]") != nullptr || group.find("momentum") != nullptr;
}

constexpr NamedScheduler rows[] = {
    {"ConstantLR",
     [](Optimizer& optimizer, std::int64_t steps) -> Made {
       return std::make_unique<ConstantLR>(
           optimizer, ConstantLROptions{.total_iters = steps / 2});
     }},
    {"CosineAnnealingLR",
     [](Optimizer& optimizer, std::int64_t steps) -> Made {
       return std::make_unique<CosineAnnealingLR>(
           optimizer, CosineAnnealingLROptions{.T_max = steps});
     }},
    {"CosineAnnealingWarmRestarts",
     [](Optimizer& optimizer, std::int64_t steps) -> Made {
       return std::make_unique<CosineAnnealingWarmRestarts>(
           optimizer, CosineAnnealingWarmRestartsOptions{.T_0 = steps / 2});
     }},
    {"CyclicLR",
     [](Optimizer& optimizer, std::int64_t steps) -> Made {
       return std::make_unique<CyclicLR>(
           optimizer,
           CyclicLROptions{.base_lr = rates(optimizer, 0.1),
                           .max_lr = rates(optimizer, 1),
                           .step_size_up = steps / 4,
                           .cycle_momentum = has_momentum(optimizer)});
     }},
    {"ExponentialLR",
     [](Optimizer& optimizer, std::int64_t) -> Made {
       return std::make_unique<ExponentialLR>(
           optimizer, ExponentialLROptions{.gamma = 0.9});
     }},
    {"LinearLR",
     [](Optimizer& optimizer, std::int64_t steps) -> Made {
       return std::make_unique<LinearLR>(optimizer,
                                         LinearLROptions{.total_iters = steps});
     }},
    {"MultiStepLR",
     [](Optimizer& optimizer, std::int64_t steps) -> Made {
       return std::make_unique<MultiStepLR>(
           optimizer,
           MultiStepLROptions{.milestones = {steps / 2, steps * 3 / 4}});
     }},
    {"OneCycleLR",
     [](Optimizer& optimizer, std::int64_t steps) -> Made {
       return std::make_unique<OneCycleLR>(
           optimizer,
           OneCycleLROptions{.max_lr = rates(optimizer, 1),
                             .total_steps = steps,
                             .cycle_momentum = has_momentum(optimizer)});
     }},
    {"PolynomialLR",
     [](Optimizer& optimizer, std::int64_t steps) -> Made {
       return std::make_unique<PolynomialLR>(
           optimizer, PolynomialLROptions{.total_iters = steps});
     }},
    {"StepLR",
     [](Optimizer& optimizer, std::int64_t steps) -> Made {
       return std::make_unique<StepLR>(optimizer,
                                       StepLROptions{.step_size = steps / 4});
     }},
};

}  // namespace

std::vector<std::string> scheduler_names() {
  std::vector<std::string> names;
  for (const NamedScheduler& row : rows) names.emplace_back(row.name);
  return names;
}

std::unique_ptr<LRScheduler> make_scheduler(const std::string& name,
                                            Optimizer& optimizer,
                                            std::int64_t steps) {
  if (steps < 4) {
    throw Error(fmt::format(
        "make_scheduler: a schedule needs at least 4 steps, not {}", steps));
  }
  for (const NamedScheduler& row : rows) {
    if (name == row.name) return row.make(optimizer, steps);
  }
  throw Error("make_scheduler: unknown scheduler \"" + name +
              "\"; use one of " + join(scheduler_names()));
}

}  // namespace fuse
