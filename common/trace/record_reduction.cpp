#include <array>

#include "fusebook/trace/recorder.h"

namespace fuse {
namespace {

ValueId apply_all(Program& program, std::span<const OpCode> operations,
                  ValueId value, std::source_location place) {
  for (const OpCode op : operations) {
    value = program.apply(op, std::array{value}, place);
  }
  return value;
}

}  // namespace

ValueId Recorder::record_reduction(const Reduction& what, OpCode op,
                                   const TensorList& list,
                                   std::source_location place) {
  touch_blocks(*list.impl());
  program_.begin_operation();
  const ValueId elements =
      apply_all(program_, what.each, value_of(list, place), place);
  return apply_all(program_, what.last, program_.reduce(op, elements, place),
                   place);
}

TensorList Recorder::reduce(const Reduction& what, const TensorList& list,
                            std::source_location place) {
  const ValueId value = record_reduction(what, what.op, list, place);
  const auto& of = list.impl();
  std::shared_ptr<ListImpl> impl = take_spare();
  impl->recorder = this;
  impl->value = value;
  impl->rate = Rate::entry;
  impl->dtype = DType::float64;
  impl->count = of->count;
  impl->like = of->like != nullptr ? of->like : of;
  pending_.push_back(impl);
  return TensorList(std::move(impl));
}

Scalar Recorder::total(const Reduction& what, const TensorList& list,
                       std::source_location place) {
  const ValueId value = record_reduction(what, total_of(what.op), list, place);
  return Scalar::of_recording(value, serial(), later(value), place);
}

}  // namespace fuse
