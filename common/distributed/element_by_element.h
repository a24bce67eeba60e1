#pragma once

#include <cstdint>
#include <string>

#include "fusebook/optim_base/stand_ins.h"
#include "fusebook/trace/recorder.h"

namespace fuse {

/// What a recording of an optimizer's step shows.
struct RecordedStep {
  /// Each element is updated by itself, so that a part of a tensor may be updated
  /// elsewhere: nothing reduces elements or breaks the recording.
  bool is_by_element = false;
  /// Of its operations and the numbers they read, up to the first break.
  std::uint64_t hash = 0;
};

/// As ranks compare it.
std::string fact_of(const RecordedStep& recorded);

/// Records what the step of an optimizer does now, on small tensors of the same
/// kinds as the parameters that it had at first: the same on ranks that have other
/// shares. Nothing is run and nothing of the optimizer changes.
class StepRecorder {
 public:
  explicit StepRecorder(Optimizer& optimizer) : stand_ins_(optimizer) {}

  /// Throws what the step throws.
  RecordedStep record(bool with_hooks = false);
  /// Begins anew, as all ranks do if one of them has failed.
  void forget() { stand_ins_.forget(); }

 private:
  struct Seen {};  // ends a recording that was only looked at

  class Look final : public Executor {
   public:
    void execute(const Program& program) override;
    void graph_break(const std::string& /*why*/) override { breaks = true; }

    RecordedStep seen;
    bool breaks = false;
  };

  StandIns stand_ins_;
  Look look_;
  Recorder recorder_{look_, false};
};

}  // namespace fuse
