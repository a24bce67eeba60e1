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

/// What a recording computes from a number on a GPU: the kernel will know it,
/// the host only where it asks.
struct LaterNumber {
  std::optional<double> value;
};

/// A number that a step depends on: a learning rate, a beta, a literal. It is
/// either a double, whose bits a compiled step may bake into its code and
/// guards, or a 0-d tensor, which is read anew at every step and never guarded:
/// one in host memory when the step is recorded, one on a GPU by the kernel
/// itself, so that nothing waits for it. Arithmetic on scalars is in float64.
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
  // Moving copies, so that no number is lost in what was moved from.
  Scalar(Scalar&& other) noexcept : Scalar(std::as_const(other)) {}  // NOLINT
  Scalar& operator=(Scalar&& other) noexcept {
    return *this = std::as_const(other);
  }
  ~Scalar() = default;

  /// One number for parameter groups that are updated together; each has its own,
  /// plain numbers or what 0-d tensors held. Its value can be asked for in
  /// `update` of an optimizer, which then gets groups that agree on the answer.
  static Scalar of_groups(std::shared_ptr<const NumberColumn> column,
                          bool are_tensors, const Origin& origin);

  /// True for a 0-d tensor, false for a plain number.
  bool is_tensor() const { return tensor_.defined() || are_tensors_; }
  /// The number as it is now; of one on a GPU, after a wait for it. Throws Error
  /// for what was computed from such a number in a recording that failed.
  double value() const;
  /// Whether that is 0: all that groups have to agree on where this is asked.
  bool is_zero() const;
  /// The 0-d tensor, undefined for a plain number. Throws Error for the numbers of
  /// several groups.
  const Tensor& tensor() const {
    if (column_ != nullptr) refuse_tensor();
    return tensor_;
  }
  /// The numbers of several groups, or null.
  const std::shared_ptr<const NumberColumn>& column() const { return column_; }
  /// One number, or those of several groups.
  Number number() const;

  /// Gives it another value: in place if it is a tensor.
  void assign(double value);

  /// Which hyper-parameter this is, for guards and reports.
  const Origin& origin() const { return origin_; }
  void set_origin(const Origin& origin) {
    origin_ = origin;
    teller_.tell();
  }
  /// Says that a number will go on moving: where compiled steps promote numbers
  /// that moved, they need not see this one move first.
  void set_moves() {
    origin_.moves = true;
    teller_.tell();
  }
  /// Says that a scheduler moves this number, for those who would freeze it.
  void set_scheduled() {
    origin_.scheduled = true;
    teller_.tell();
  }

  /// Has whatever is assigned to this very number noted from now on, but not what
  /// is written into a tensor.
  void watch(const std::shared_ptr<NumberChanges>& changes,
             const NumberChanges::Which& number) {
    teller_.tell_to(changes, number);
  }

  /// The value this scalar has in the recording of that serial number; -1 when
  /// it is not the result of recorded arithmetic.
  ValueId recorded(std::uint64_t recording) const {
    return recording_ == recording ? recorded_ : -1;
  }
  bool is_recorded() const { return recorded_ >= 0; }
  /// True for a tensor on a GPU, and for what was recorded on one.
  bool is_on_gpu() const;
  /// Has a recording do what it still has to do to the tensor.
  void touch() const;

 private:
  friend Scalar scalar_apply(OpCode op, std::span<const Scalar* const> operands,
                             std::source_location place);
  void refuse_tensor() const;

  double value_ = 0;
  Tensor tensor_;
  std::shared_ptr<const NumberColumn> column_;  // then nothing of the two above
  bool are_tensors_ = false;
  Origin origin_;
  std::uint64_t recording_ = 0;
  ValueId recorded_ = -1;
  std::shared_ptr<LaterNumber> later_;  // else value_ is the number
  ChangeTeller teller_;
};

/// As torch prints it: "tensor(0.0047)", or the shortest text that reads back
/// as the same number.
std::string to_string(const Scalar& scalar);

/// One operation of ops.def on scalars; recorded inside `compile`.
Scalar scalar_apply(OpCode op, std::span<const Scalar* const> operands,
                    std::source_location place);
/// The same for two.
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
