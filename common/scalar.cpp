#include "scalar.h"

#include <algorithm>
#include <array>

#include "error.h"
#include "loops.h"
#include "number_text.h"
#include "recorder.h"

namespace fuse {

Scalar::Scalar(const Tensor& tensor, std::source_location place)
    : tensor_(tensor) {
  origin_.place = place;
  if (!tensor.defined() || tensor.dim() != 0) {
    throw Error(
        "what stands for a number is a number or a 0-d tensor, not " +
        (tensor.defined() ? "a tensor of shape " + to_string(tensor.shape())
                          : std::string("an undefined tensor")) +
        ", at " + place.file_name() + ":" + std::to_string(place.line()));
  }
}

double Scalar::value() const {
  if (is_tensor()) return tensor_.item();
  if (later_ == nullptr) return value_;
  if (Recorder* const recorder = Recorder::current();
      recorder != nullptr && recorded(recorder->serial()) >= 0) {
    return recorder->number(recorded_);
  }
  if (later_->value) return *later_->value;
  throw Error(
      "the number computed at " + std::string(origin_.place.file_name()) + ":" +
      std::to_string(origin_.place.line()) +
      " comes from a tensor on a GPU, and what recorded it ended with an "
      "exception before anybody read it; compute it anew");
}

bool Scalar::is_on_gpu() const {
  if (later_ != nullptr) return !later_->value;
  return is_tensor() && !tensor_.device().is_cpu();
}

void Scalar::touch() const {
  if (is_tensor()) tensor_.address(false);
}

void Scalar::assign(double value) {
  if (is_tensor()) {
    tensor_.fill_(value);
  } else {
    value_ = value;
  }
}

std::string to_string(const Scalar& scalar) {
  return scalar.is_tensor() ? to_string(scalar.tensor())
                            : number_text(scalar.value());
}

namespace {

double evaluate(OpCode op, std::span<const Scalar* const> operands) {
  std::array<double, 4> in{};
  for (std::size_t k = 0; k < operands.size(); ++k) {
    in[k] = operands[k]->value();
  }
  return apply_to_numbers(op, std::span(in).first(operands.size()));
}

}  // namespace

Scalar scalar_apply(OpCode op, std::span<const Scalar* const> operands,
                    std::source_location place) {
  Recorder* const recorder = Recorder::current();
  if (recorder == nullptr) return Scalar(evaluate(op, operands), place);
  // Any of them may flush the recording.
  for (const Scalar* const operand : operands) operand->touch();
  const bool later = std::any_of(
      operands.begin(), operands.end(),
      [&](const Scalar* operand) { return recorder->loads(*operand); });
  Scalar result(later ? 0 : evaluate(op, operands), place);
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
