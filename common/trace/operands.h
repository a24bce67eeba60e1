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

/// Who takes operands, for messages about them. The first `outputs` of them are
/// called outputs.
struct Callee {
  std::string_view prefix;  ///< of its name; nothing is put together in vain
  std::string_view name;
  std::source_location place;
  std::size_t outputs = 0;

  /// Where the user called it, "file:line".
  std::string where() const;
  std::string function() const { return std::string(prefix).append(name); }
  /// "operand 2 (grads)", with the list's label if it has one.
  std::string describe(Operands operands, std::size_t k) const;
};

/// The list that says which shapes the tensors of another one have: itself, or
/// one in memory where it is not computed yet.
const ListImpl& shapes_of(const ListImpl& list);

/// All lists must have one length and lie on one device; throws Error naming
/// both operands and the place otherwise. True when all lists of elements have
/// the same shapes; else see broadcast.h.
bool check_lists(const Callee& callee, Operands operands);

}  // namespace fuse
