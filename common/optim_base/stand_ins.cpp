#include "fusebook/optim_base/stand_ins.h"

#include <algorithm>
#include <set>
#include <source_location>
#include <tuple>
#include <utility>

namespace fuse {
namespace {

std::vector<Tensor> stand_ins_for(const std::vector<Tensor>& params) {
  std::vector<Tensor> small;
  std::set<std::tuple<DType, std::size_t>> kinds;
  for (const Tensor& each : params) {
    Shape shape = each.shape();
    if (!kinds.emplace(each.dtype(), shape.size()).second) continue;
    for (std::int64_t& size : shape) size = 2;
    Tensor one = zeros(shape, each.dtype(), each.device());
    one.set_grad(zeros_like(one));
    small.push_back(std::move(one));
  }
  return small;
}

}  // namespace

// For a scope, they are what the optimizer has.
class StandIns::InPlace {
 public:
  explicit InPlace(StandIns& all) : all_(all) {
    all_.kept_->steps = all_.optimizer_.steps();
    all_.kept_->owner = &all_.optimizer_;
    exchange();
  }
  InPlace(const InPlace&) = delete;
  InPlace& operator=(const InPlace&) = delete;
  ~InPlace() {
    exchange();
    all_.kept_->owner = nullptr;
  }

 private:
  void exchange() {
    Optimizer& optimizer = all_.optimizer_;
    const std::size_t count =
        std::min(all_.params_.size(), optimizer.group_count());
    for (std::size_t g = 0; g < count; ++g) {
      optimizer.group(g).params.swap(all_.params_[g]);
      optimizer.group(g).param_names.swap(all_.names_[g]);
    }
    std::swap(*optimizer.batches_, all_.batches_);
    optimizer.kept_.swap(all_.kept_);
  }

  StandIns& all_;
};

StandIns::StandIns(Optimizer& optimizer)
    : optimizer_(optimizer), names_(optimizer.group_count()) {
  for (std::size_t g = 0; g < optimizer.group_count(); ++g) {
    params_.push_back(stand_ins_for(optimizer.group(g).params));
  }
}

void StandIns::step(bool with_hooks) {
  const InPlace scope(*this);
  if (with_hooks) optimizer_.before_step_->call(optimizer_);
  optimizer_.make_step({}, {}, std::source_location::current());
  optimizer_.kept_->keep();
  if (with_hooks) optimizer_.after_step_->call(optimizer_);
}

void StandIns::forget() {
  batches_ = {};
  kept_ = std::make_shared<Optimizer::Kept>();
}

}  // namespace fuse
