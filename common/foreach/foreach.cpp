#include "fusebook/foreach/foreach.h"

#include <fmt/core.h>

#include <string>
#include <string_view>

#include "fusebook/compile/compiled_function.h"
#include "fusebook/support/call_place.h"
#include "fusebook/support/error.h"
#include "fusebook/support/source_place.h"
#include "fusebook/trace/map_scope.h"

namespace fuse {
namespace {

// Runs single operations. One per thread, so that threads never wait.
struct Eager {
  Eager() { function.set_eager(); }

  // Nothing recorded survives an operation, even one that throws.
  struct Call {
    explicit Call(Eager& eager) : recorder(eager.recorder) {}
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call() { recorder.abandon(); }
    Recorder& recorder;
  };

  Function function{{.name = "eager", .backend = Backend::interpreted}};
  Recorder recorder{function, false};
};

Eager& eager() {
  static thread_local Eager instance;
  return instance;
}

// While the function of a foreach_map runs, only the library itself may work on
// lists.
void refuse_in_map(std::string_view name, std::source_location place) {
  const MapScope* const scope = MapScope::current();
  if (scope == nullptr) return;
  scope->refuse_list_call("foreach_" + std::string(name), place);
}

void check_given(std::string_view name, Operands operands,
                 std::source_location place) {
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (!operands[k]->is_list || operands[k]->list.defined()) continue;
    throw Error(fmt::format("foreach_{}: operand {} was moved from, at {}",
                            name, k + 1, at(CallPlace::or_else(place))));
  }
}

void check_target(std::string_view name, const TensorList& target,
                  std::source_location place) {
  if (target.defined()) return;
  throw Error("foreach_" + std::string(name) +
              "_: the list was moved from, at " +
              at(CallPlace::or_else(place)));
}

void check_elements(const TensorList& list, std::source_location place) {
  if (list.impl()->rate == Rate::element) return;
  throw Error("foreach_to at " + at(place) +
              " takes a list of tensors, not of per-tensor numbers: those are "
              "always computed in float64, whatever dtype they are stored in");
}

}  // namespace

TensorList foreach_apply(OpCode op, Operands operands,
                         std::source_location place) {
  refuse_in_map(name_of(op), place);
  check_given(name_of(op), operands, place);
  if (Recorder* recorder = Recorder::current()) {
    return recorder->apply(op, operands, place);
  }
  const Eager::Call call(eager());
  TensorList result = call.recorder.apply(op, operands, place);
  call.recorder.finish();
  return result;
}

void foreach_apply_(OpCode op, const TensorList& target, Operands operands,
                    std::source_location place) {
  refuse_in_map(name_of(op), place);
  check_target(name_of(op), target, place);
  check_given(name_of(op), operands, place);
  if (Recorder* recorder = Recorder::current()) {
    recorder->apply_into(op, target, operands, place);
    return;
  }
  const Eager::Call call(eager());
  call.recorder.apply_into(op, target, operands, place);
  call.recorder.finish();
}

TensorList foreach_to(const TensorList& list, DType dtype,
                      std::source_location place) {
  refuse_in_map("to", place);
  if (!list.defined()) {
    refuse_moved_from(std::source_location::current(), "the list");
  }
  check_elements(list, place);
  if (list.impl()->dtype == dtype) return list;
  if (Recorder* recorder = Recorder::current()) {
    return recorder->cast(list, dtype, place);
  }
  const Eager::Call call(eager());
  TensorList result = call.recorder.cast(list, dtype, place);
  call.recorder.finish();
  return result;
}

}  // namespace fuse
