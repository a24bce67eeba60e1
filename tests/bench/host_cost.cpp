#include "bench/host_cost.h"

#include <optional>
#include <string>
#include <vector>

#include "bench/reading.h"
#include "fusebook/bench/benchmark.h"
#include "fusebook/ir/plan.h"
#include "fusebook/optim/adam.h"
#include "fusebook/runtime/launch_table.h"
#include "fusebook/runtime/parallel.h"
#include "fusebook/support/error.h"
#include "fusebook/trace/recorder.h"

namespace fuse::bench {
namespace {

// Takes programs and runs nothing.
class Catcher final : public Executor {
 public:
  void execute(const Program& program) override {
    if (keep) kept = program;
  }
  void graph_break(const std::string&) override {}

  bool keep = false;
  std::optional<Program> kept;
};

class Recorded {
 public:
  explicit Recorded(std::size_t tensors) : adam_(parameters(tensors)) {
    adam_.step();  // creates the state
  }

  void record() {
    {
      const Recording recording(recorder_);
      adam_.step();
    }
    recorder_.finish();
  }

  Program program() {
    catcher_.keep = true;
    record();
    catcher_.keep = false;
    return *catcher_.kept;
  }

 private:
  static std::vector<Tensor> parameters(std::size_t tensors) {
    std::vector<Tensor> params;
    for (std::size_t i = 0; i < tensors; ++i) {
      params.push_back(zeros({8}));
      params.back().set_grad(zeros({8}));
    }
    return params;
  }

  Adam adam_;
  Catcher catcher_;
  Recorder recorder_{catcher_, true};
};

}  // namespace

void measure_host_cost(std::size_t tensors) {
  Recorded recorded(tensors);
  const Program program = recorded.program();
  const Program next = recorded.program();
  const Plan plan = make_plan(program, [](const Origin&) { return true; });
  Table table;
  table.bind(plan, program, thread_count());
  bool fits = true;
  const auto times =
      interleaved({[&] { recorded.record(); },
                   [&] {
                     fits = next.structure_hash() == program.structure_hash() &&
                            next.same_structure(program) &&
                            plan.matches(next) && fits;
                   },
                   [&] { table.bind(plan, next, thread_count()); }});
  if (!fits) throw Error("the same step was recorded differently");
  const std::string name = std::to_string(tensors) + " tensors";
  tell({"host", name, "recording", times[0].median_us()});
  // The hash of the known program is kept; here it was made anew, too.
  tell({"host", name, "guards", times[1].median_us()});
  tell({"host", name, "binding", times[2].median_us()});
}

}  // namespace fuse::bench
