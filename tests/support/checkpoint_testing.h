// What the tests of checkpoints share: training runs of every optimizer with
// every scheduler, and all their bits as text.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/optim_base/optimizer.h"
#include "support/lr_scheduler_rows.h"
#include "support/step_testing.h"

namespace checkpoint_testing {

using namespace fuse;
using lr_testing::Made;
using lr_testing::ScheduleRow;
using OptimizerPtr = std::unique_ptr<Optimizer>;

/// An optimizer, with numbers in one group or with 0-d tensors in two.
struct Kind {
  std::string name;
  bool has_momentum;  // that schedulers may cycle
  std::function<OptimizerPtr(bool tensors)> make;
};

/// Every optimizer, with options that make it keep all it can.
const std::vector<Kind>& kinds();

/// One optimizer with one scheduler, and the step that trains it.
class Run {
 public:
  Run(const Kind& kind, const ScheduleRow& row, bool tensors)
      : opt(kind.make(tensors)), sched(row.make(*opt, kind.has_momentum)) {}

  /// The steps from one to another, from 1; gradients depend on the step alone.
  template <class Step>
  void train(Step& step, int first, int last) {
    for (int n = first; n <= last; ++n) {
      testing::Random random(std::uint64_t(n) + 100);
      for (const Tensor& param : opt->parameters()) {
        param.grad().copy_(step_testing::random_tensor(param.shape(), random,
                                                       0.25, param.dtype()));
      }
      step();
      sched.step(n);
    }
  }

  OptimizerPtr opt;
  Made sched;
};

/// Everything a run consists of, to the last bit.
std::string bits_of(Optimizer& opt, const SchedulerState& state);
std::string bits_of(const Run& run);

/// Calls `f(kind, row, tensors, name)` for every run.
template <class F>
void for_each_run(F f) {
  std::size_t number = 0;
  for (const Kind& kind : kinds()) {
    for (const ScheduleRow& row : lr_testing::rows()) {
      for (const bool tensors : {false, true}) {
        f(kind, row, tensors, "run" + std::to_string(number++));
      }
    }
  }
}

}  // namespace checkpoint_testing
