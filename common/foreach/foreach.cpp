#include "fusebook/foreach/foreach.h"

#include <fmt/core.h>

#include <string>
#include <string_view>

#include "fusebook/foreach/eager.h"
#include "fusebook/support/call_place.h"
#include "fusebook/support/error.h"
#include "fusebook/support/source_place.h"

namespace fuse {
namespace {

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
  return record_or_run(
      [&](Recorder& recorder) { return recorder.apply(op, operands, place); });
}

void foreach_apply_(OpCode op, const TensorList& target, Operands operands,
                    std::source_location place) {
  refuse_in_map(name_of(op), place);
  check_target(name_of(op), target, place);
  check_given(name_of(op), operands, place);
  record_or_run([&](Recorder& recorder) {
    recorder.apply_into(op, target, operands, place);
  });
}

TensorList foreach_to(const TensorList& list, DType dtype,
                      std::source_location place) {
  refuse_in_map("to", place);
  if (!list.defined()) {
    refuse_moved_from(std::source_location::current(), "the list");
  }
  check_elements(list, place);
  if (list.impl()->dtype == dtype) return list;
  return record_or_run(
      [&](Recorder& recorder) { return recorder.cast(list, dtype, place); });
}

}  // namespace fuse
