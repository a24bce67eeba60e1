#include "fusebook/distributed/element_by_element.h"

#include <algorithm>
#include <exception>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "fusebook/trace/recorder.h"

namespace fuse {
namespace {

// Ends a recording that was only looked at.
struct Seen {};

class Look final : public Executor {
 public:
  void execute(const Program& program) override {
    seen.is_by_element = program.reductions().empty() && !breaks;
    seen.hash = program.structure_hash();
    throw Seen();
  }
  void graph_break(const std::string& /*why*/) override { breaks = true; }

  RecordedStep seen;
  bool breaks = false;
};

// In the place of a group's parameters: one small tensor of each kind.
class StandIns {
 public:
  explicit StandIns(ParamGroup& group)
      : group_(group), params_(group.params), names_(group.param_names) {
    group.params = stand_ins();
    group.param_names.clear();
  }
  StandIns(StandIns&& other) = delete;
  StandIns(const StandIns&) = delete;
  StandIns& operator=(const StandIns&) = delete;
  ~StandIns() {
    group_.params = std::move(params_);
    group_.param_names = std::move(names_);
  }

 private:
  std::vector<Tensor> stand_ins() const {
    std::vector<Tensor> small;
    std::set<std::tuple<DType, std::size_t>> kinds;
    for (const Tensor& each : params_) {
      Shape shape = each.shape();
      if (!kinds.emplace(each.dtype(), shape.size()).second) continue;
      for (std::int64_t& size : shape) size = 2;
      Tensor one = zeros(shape, each.dtype(), each.device());
      one.set_grad(zeros_like(one));
      small.push_back(std::move(one));
    }
    return small;
  }

  ParamGroup& group_;
  std::vector<Tensor> params_;
  std::vector<std::string> names_;
};

}  // namespace

RecordedStep record_step(Optimizer& optimizer) {
  std::vector<std::unique_ptr<StandIns>> groups;
  for (std::size_t g = 0; g < optimizer.group_count(); ++g) {
    groups.push_back(std::make_unique<StandIns>(optimizer.group(g)));
  }
  Look look;
  Recorder recorder(look, false);
  try {
    const Recording recording(recorder);
    optimizer.step();
    recorder.finish();
  } catch (const Seen&) {
    return look.seen;
  }
  return {};
}

}  // namespace fuse
