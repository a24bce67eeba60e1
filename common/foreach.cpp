#include "foreach.h"

#include "function.h"

namespace fuse {
namespace {

// Runs single operations. Each thread has its own, so that none waits.
struct Eager {
  Eager() { function.set_eager(); }

  Function function{{.name = "eager", .backend = Backend::interpreted}};
  Recorder recorder{function, false};
};

Eager& eager() {
  static thread_local Eager instance;
  return instance;
}

}  // namespace

TensorList foreach_apply(OpCode op, Operands operands,
                         std::source_location place) {
  if (Recorder* recorder = Recorder::current()) {
    return recorder->apply(op, operands, place);
  }
  TensorList result = eager().recorder.apply(op, operands, place);
  eager().recorder.finish();
  return result;
}

void foreach_apply_(OpCode op, const TensorList& target, Operands operands,
                    std::source_location place) {
  if (Recorder* recorder = Recorder::current()) {
    recorder->apply_into(op, target, operands, place);
    return;
  }
  eager().recorder.apply_into(op, target, operands, place);
  eager().recorder.finish();
}

}  // namespace fuse
