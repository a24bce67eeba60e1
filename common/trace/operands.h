#pragma once

#include <cstddef>
#include <source_location>
#include <span>
#include <string>
#include <string_view>

#include "fusebook/tensor/tensor_list.h"
#include "fusebook/trace/scalar.h"

namespace fuse {

/// An operand of a list operation.
struct Operand {
  // NOLINTBEGIN(google-explicit-constructor)
  Operand(TensorList tensors) : list(std::move(tensors)), is_list(true) {}
  Operand(std::vector<Tensor> tensors)
      : Operand(TensorList(std::move(tensors))) {}
  Operand(Scalar number) : scalar(std::move(number)) {}
  Operand(double number,
          std::source_location place = std::source_location::current())
      : scalar(number, place) {}
  Operand(const Tensor& number,
          std::source_location place = std::source_location::current())
      : scalar(number, place) {}
  // NOLINTEND(google-explicit-constructor)

  TensorList list{std::shared_ptr<ListImpl>()};
  Scalar scalar{0.0};
  bool is_list = false;
};

using Operands = std::span<const Operand* const>;

/// The function that takes the operands, for messages about them. The first
/// `outputs` operands are called outputs.
struct Callee {
  /// prefix of its name; joined only when an error is reported
  std::string_view prefix;
  std::string_view name;
  std::source_location place;
  std::size_t outputs = 0;

  /// The caller's location, "file:line".
  std::string where() const;
  std::string function() const { return std::string(prefix).append(name); }
  /// "operand 2 (grads)", with the list's label if it has one.
  std::string describe(Operands operands, std::size_t k) const;
};

/// The list that defines the shapes of a list's tensors: the list itself or, if
/// it is not computed yet, one in memory.
const ListImpl& shapes_of(const ListImpl& list);

/// All lists must have the same length and be on the same device; otherwise
/// throws Error naming both operands and the place. True if all lists of
/// elements have the same shapes; otherwise see broadcast.h.
bool check_lists(const Callee& callee, Operands operands);

}  // namespace fuse
