// What optimizers report about themselves while a step is recorded: see Facts.
#include <algorithm>
#include <typeinfo>

#include "fusebook/optim_base/optimizer.h"
#include "fusebook/optim_base/recent_batches.h"
#include "fusebook/trace/recorder.h"

namespace fuse {

void ParamGroup::tell(Facts& facts) {
  visit_scalars([&](const Named& named) {
    using Kind = OptionFact::Kind;
    const Scalar& scalar = *named.scalar;
    // Reading the value of a number that is being recorded would end the
    // recording.
    const bool unknown = scalar.is_tensor() || scalar.is_recorded();
    facts.add({named.name, named.index, unknown ? Kind::tensor : Kind::number,
               unknown ? 0 : scalar.value()});
  });
  const auto add = [&](const char* name, bool on) {
    facts.add({name, -1, OptionFact::Kind::flag, on ? 1.0 : 0.0});
  };
  visit_flags([&](const char* name, bool& on) { add(name, on); });
  for (const Switch& each : saved_switches()) add(each.name, this->*each.on);
  add("states_8bit", states_8bit);
}

void Optimizer::Kept::tell(Facts& facts) const {
  if (owner == nullptr) return;
  // Groups may have been added or removed since the step.
  const std::size_t count =
      std::min(owner->group_count(), owner->batches_->group_count());
  for (std::size_t g = 0; g < count; ++g) {
    facts.begin_group(std::int64_t(owner->batches_->updated(g)));
    owner->group(g).tell(facts);
  }
}

void Optimizer::note_facts(std::source_location place) {
  Recorder* const recorder = Recorder::current();
  Facts* const facts = recorder == nullptr ? nullptr : recorder->facts();
  if (facts == nullptr) return;
  kept_->owner = this;
  facts->add_step(typeid(*this), place, kept_);
}

}  // namespace fuse
