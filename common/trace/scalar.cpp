#include "fusebook/trace/scalar.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "fusebook/support/error.h"
#include "fusebook/support/number_text.h"
#include "fusebook/support/source_place.h"
#include "fusebook/tensor/tracer.h"
#include "fusebook/trace/column_reads.h"

namespace fuse {

Scalar::Scalar(const Tensor& tensor, std::source_location place)
    : tensor_(tensor) {
  origin_.place = place;
  if (!tensor.defined() || tensor.dim() != 0) {
    throw Error(fmt::format(
        "expected a number or a 0-d tensor, got {}, at {}",
        tensor.defined() ? "a tensor of shape " + to_string(tensor.shape())
                         : std::string("an undefined tensor"),
        at(place)));
  }
}

Scalar Scalar::of_groups(std::shared_ptr<const NumberColumn> column,
                         bool are_tensors, const Origin& origin) {
  if (column == nullptr || column->values.empty()) {
    throw Error("Scalar::of_groups: no numbers were given");
  }
  Scalar scalar(0.0, origin.place);
  scalar.column_ = std::move(column);
  scalar.are_tensors_ = are_tensors;
  scalar.origin_ = origin;
  return scalar;
}

Scalar Scalar::of_recording(ValueId value, std::uint64_t recording,
                            std::shared_ptr<LaterNumber> later,
                            std::source_location place) {
  Scalar scalar(0.0, place);
  scalar.recorded_ = value;
  scalar.recording_ = recording;
  scalar.later_ = std::move(later);
  return scalar;
}

Number Scalar::number() const {
  if (column_ == nullptr) return {value(), nullptr};
  if (!is_recorded()) return {column_->values.front(), column_};
  Tracer* const recorder = Tracer::current();
  if (recorder != nullptr && recorded(recorder->serial()) >= 0) {
    return recorder->number(recorded_);
  }
  throw Error(fmt::format(
      "the number computed at {} differs between parameter groups, and the "
      "step that computed it is over; compute it again",
      at(origin_.place)));
}

bool Scalar::is_zero() const {
  return column_ == nullptr ? value() == 0
                            : read_column(number(), origin_, Wanted::zero) == 0;
}

void Scalar::refuse_tensor() const {
  read_column(number(), origin_, Wanted::tensor);
}

double Scalar::value() const {
  if (column_ != nullptr) {
    return read_column(number(), origin_, Wanted::value);
  }
  if (is_tensor()) return tensor_.item();
  if (later_ == nullptr) return value_;
  if (Tracer* const recorder = Tracer::current();
      recorder != nullptr && recorded(recorder->serial()) >= 0) {
    if (!recorder->is_computed_later(recorded_)) {
      return recorder->number(recorded_).value;
    }
    recorder->flush("a number is read before it is computed");
  }
  if (later_->value) return *later_->value;
  if (later_->memory.defined()) return later_->memory.item();
  throw Error(fmt::format(
      "the number computed at {} comes from a tensor, and its recording ended "
      "with an exception before the number was read; compute it again",
      at(origin_.place)));
}

bool Scalar::is_on_gpu() const {
  if (later_ != nullptr && later_->memory.defined()) {
    return !later_->memory.device().is_cpu();
  }
  if (later_ != nullptr) return !later_->value;
  return tensor_.defined() && !tensor_.device().is_cpu();
}

void Scalar::touch() const {
  if (tensor_.defined()) tensor_.address(false);
}

void Scalar::assign(double value) {
  if (tensor_.defined()) {
    tensor_.fill_(value);
  } else {
    value_ = value;
    teller_.tell();
  }
}

std::string to_string(const Scalar& scalar) {
  return scalar.is_tensor() && scalar.column() == nullptr
             ? to_string(scalar.tensor())
             : number_text(scalar.value());
}

namespace {

Number evaluate(OpCode op, std::span<const Scalar* const> operands) {
  std::array<Number, 4> in;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    in[k] = operands[k]->number();
  }
  return apply_to_columns(op, std::span(in).first(operands.size()));
}

const Scalar* find_column(std::span<const Scalar* const> operands) {
  const auto found = std::find_if(
      operands.begin(), operands.end(),
      [](const Scalar* operand) { return operand->column() != nullptr; });
  return found == operands.end() ? nullptr : *found;
}

}  // namespace

Scalar scalar_apply(OpCode op, std::span<const Scalar* const> operands,
                    std::source_location place) {
  Tracer* const recorder = Tracer::current();
  if (recorder == nullptr) {
    const Number number = evaluate(op, operands);
    Scalar result(number.value, place);
    result.column_ = number.column;
    return result;
  }
  // Any of them may flush the recording.
  for (const Scalar* const operand : operands) operand->touch();
  const bool later = std::any_of(
      operands.begin(), operands.end(),
      [&](const Scalar* operand) { return recorder->loads(*operand); });
  // What is computed from numbers of groups is evaluated only on request.
  const Scalar* const of_groups = find_column(operands);
  const bool now = !later && of_groups == nullptr;
  Scalar result(now ? evaluate(op, operands).value : 0, place);
  if (of_groups != nullptr) result.column_ = of_groups->column_;
  result.recorded_ = recorder->record_scalar(op, operands, place);
  result.recording_ = recorder->serial();
  if (later) result.later_ = recorder->later(result.recorded_);
  return result;
}

Scalar scalar_op(OpCode op, const Scalar& a, const Scalar& b) {
  const Scalar* const operands[] = {&a, &b};
  return scalar_apply(op, operands, a.origin().place);
}

}  // namespace fuse
