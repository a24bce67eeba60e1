#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <utility>

#include "fusebook/ir/program.h"
#include "fusebook/tensor/tensor.h"
#include "fusebook/trace/number_changes.h"

namespace fuse {

class Recorder;

/// A number that a recording computes from a number on a GPU, or from elements
/// of tensors: the kernel computes it, and the host reads it only on request.
struct LaterNumber {
  std::optional<double> value;
  Tensor memory;  ///< 0-d, where the kernel has stored it; may be undefined
};

/// A number that a step depends on: a learning rate, a beta, a literal. It is
/// either a double, whose bits a compiled step may bake into its code and
/// guard, or a 0-d tensor, which is read at every step and never guarded: in
/// host memory it is read when the step is recorded, on a GPU by the kernel
/// itself, so nothing waits for it. Arithmetic on scalars is in float64.
class Scalar {
 public:
  Scalar(double value,  // NOLINT(google-explicit-constructor)
         std::source_location place = std::source_location::current())
      : value_(value) {
    origin_.place = place;
  }
  /// Throws Error unless `tensor` is 0-d.
  Scalar(const Tensor& tensor,  // NOLINT(google-explicit-constructor)
         std::source_location place = std::source_location::current());
  Scalar(const Scalar&) = default;
  Scalar& operator=(const Scalar&) = default;
  // Moving copies, so that a moved-from object keeps its number.
  Scalar(Scalar&& other) noexcept : Scalar(std::as_const(other)) {}  // NOLINT
  Scalar& operator=(Scalar&& other) noexcept {
    return *this = std::as_const(other);
  }
  ~Scalar() = default;

  /// One number of parameter groups that are updated together; each group has
  /// its own value, a plain number or the contents of a 0-d tensor. The
  /// `update` of an optimizer may read its value; it is then called separately
  /// for groups that agree.
  static Scalar of_groups(std::shared_ptr<const NumberColumn> column,
                          bool are_tensors, const Origin& origin);

  /// True for a 0-d tensor, false for a plain number.
  bool is_tensor() const { return tensor_.defined() || are_tensors_; }
  /// The current value. Synchronizes for a GPU tensor. Throws Error for a
  /// number computed from such a tensor in a recording that failed.
  double value() const;
  /// True if the value is 0. Groups need to agree only on this.
  bool is_zero() const;
  /// The 0-d tensor, undefined for a plain number. Throws Error for the numbers
  /// of several groups.
  const Tensor& tensor() const {
    if (column_ != nullptr) refuse_tensor();
    return tensor_;
  }
  /// The 0-d tensor that it is or that a recording has stored it in; undefined
  /// for other numbers.
  Tensor memory() const { return later_ != nullptr ? later_->memory : tensor_; }
  /// The numbers of several groups, or null.
  const std::shared_ptr<const NumberColumn>& column() const { return column_; }
  /// One number, or those of several groups.
  Number number() const;

  /// Assigns a value; in place if it is a tensor.
  void assign(double value);

  /// The hyper-parameter this is, for guards and reports.
  const Origin& origin() const { return origin_; }
  void set_origin(const Origin& origin) {
    origin_ = origin;
    teller_.tell();
  }
  /// Declares that the number will keep moving: compiled steps that promote
  /// moving numbers need not wait to see it move.
  void set_moves() {
    origin_.moves = true;
    teller_.tell();
  }
  /// Declares that a scheduler moves this number, so it must not be frozen.
  void set_scheduled() {
    origin_.scheduled = true;
    teller_.tell();
  }

  /// From now on reports assignments to this object, but not writes into a
  /// tensor.
  void watch(const std::shared_ptr<NumberChanges>& changes,
             const NumberChanges::Which& number) {
    teller_.tell_to(changes, number);
  }

  /// The value that this scalar has in the recording with that serial number;
  /// -1 if it is not the result of recorded arithmetic.
  ValueId recorded(std::uint64_t recording) const {
    return recording_ == recording ? recorded_ : -1;
  }
  bool is_recorded() const { return recorded_ >= 0; }
  /// True for a tensor on a GPU, and for a number computed from one.
  bool is_on_gpu() const;
  /// Flushes pending writes to the tensor.
  void touch() const;

 private:
  friend Scalar scalar_apply(OpCode op, std::span<const Scalar* const> operands,
                             std::source_location place);
  friend class Recorder;
  // A number that a recording computes.
  static Scalar of_recording(ValueId value, std::uint64_t recording,
                             std::shared_ptr<LaterNumber> later,
                             std::source_location place);
  void refuse_tensor() const;

  double value_ = 0;
  Tensor tensor_;
  std::shared_ptr<const NumberColumn> column_;  // if set, neither of the above
  bool are_tensors_ = false;
  Origin origin_;
  std::uint64_t recording_ = 0;
  ValueId recorded_ = -1;
  std::shared_ptr<LaterNumber> later_;  // if null, value_ is the number
  ChangeTeller teller_;
};

/// As torch prints it: "tensor(0.0047)", or the shortest text that reads back
/// as the same number.
std::string to_string(const Scalar& scalar);

/// One operation of ops.def on scalars; recorded inside `compile`.
Scalar scalar_apply(OpCode op, std::span<const Scalar* const> operands,
                    std::source_location place);
/// The same for two operands.
Scalar scalar_op(OpCode op, const Scalar& a, const Scalar& b);

/// In float64; recorded inside `compile`.
inline Scalar operator+(const Scalar& a, const Scalar& b) {
  return scalar_op(OpCode::add, a, b);
}
/// In float64; recorded inside `compile`.
inline Scalar operator-(const Scalar& a, const Scalar& b) {
  return scalar_op(OpCode::sub, a, b);
}
/// In float64; recorded inside `compile`.
inline Scalar operator*(const Scalar& a, const Scalar& b) {
  return scalar_op(OpCode::mul, a, b);
}
/// In float64; recorded inside `compile`.
inline Scalar operator/(const Scalar& a, const Scalar& b) {
  return scalar_op(OpCode::div, a, b);
}

}  // namespace fuse
