#include "scalar.h"

#include "error.h"
#include "loops.h"
#include "number_text.h"
#include "recorder.h"

namespace fuse {

Scalar::Scalar(const Tensor& tensor, std::source_location place)
    : tensor_(tensor) {
  origin_.place = place;
  if (!tensor.defined() || tensor.dim() != 0) {
    throw Error("a hyper-parameter takes a number or a 0-d tensor, not " +
                (tensor.defined()
                     ? "a tensor of shape " + to_string(tensor.shape())
                     : std::string("an undefined tensor")));
  }
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

Scalar scalar_op(OpCode op, const Scalar& a, const Scalar& b) {
  const double operands[2] = {a.value(), b.value()};
  const void* in[4] = {&operands[0], &operands[1], nullptr, nullptr};
  double value = 0;
  loops().ops[std::size_t(DType::float64)][std::size_t(op)][3](&value, in, 1);
  Scalar result(value);
  if (Recorder* recorder = Recorder::current()) {
    result.origin_.place = a.origin().place;
    result.recorded_ = recorder->record_scalar(op, a, b);
    result.recording_ = recorder->serial();
  }
  return result;
}

}  // namespace fuse
