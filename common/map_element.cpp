#include "map_element.h"

#include <array>

#include "error.h"
#include "foreach.h"
#include "map_scope.h"

namespace fuse {
namespace {

bool is_elements(const Operand& operand) {
  return operand.is_list && operand.list.impl()->rate == Rate::element;
}

std::string describe(const Element& element, const MapScope* scope) {
  const bool known = scope != nullptr && element.position() >= 0;
  const std::string what = known
                               ? scope->operand(std::size_t(element.position()))
                               : "an intermediate value";
  return what + ", which is " + name_of(element.operand().list.impl()->dtype);
}

[[noreturn]] void refuse_dtypes(OpCode op, const Element& a, const Element& b,
                                std::source_location place,
                                const MapScope* scope) {
  const std::string call = scope != nullptr ? scope->call() + ": " : "";
  throw Error(call + std::string(name_of(op)) + " at " + at(place) + " takes " +
              describe(a, scope) + ", and " + describe(b, scope) +
              "; give all lists the same dtype");
}

// Elements meet only in one dtype.
void check_dtypes(OpCode op, std::span<const Placed* const> operands,
                  const MapScope* scope) {
  const Element* first = nullptr;
  for (const Placed* placed : operands) {
    const Element& element = placed->element();
    if (!is_elements(element.operand())) continue;
    if (first == nullptr) first = &element;
    if (element.operand().list.impl()->dtype !=
        first->operand().list.impl()->dtype) {
      refuse_dtypes(op, *first, element, operands[0]->place, scope);
    }
  }
}

Element apply_to_numbers(OpCode op, std::span<const Operand* const> operands,
                         std::source_location place) {
  std::array<const Scalar*, 4> scalars{};
  for (std::size_t k = 0; k < operands.size(); ++k) {
    scalars[k] = &operands[k]->scalar;
  }
  return scalar_apply(op, std::span(scalars).first(operands.size()), place);
}

}  // namespace

Element Element::apply(OpCode op, std::span<const Placed* const> operands) {
  const MapScope::Pause pause;
  check_dtypes(op, operands, pause.scope());
  const std::source_location place = operands[0]->place;
  std::array<const Operand*, 4> in{};
  bool any_list = false;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    in[k] = &operands[k]->element().operand();
    any_list = any_list || in[k]->is_list;
  }
  const auto used = std::span(in).first(operands.size());
  if (!any_list) return apply_to_numbers(op, used, place);
  return Element(foreach_apply(op, used, place), -1);
}

double Element::item(std::source_location place) const {
  const MapScope* const scope = MapScope::current();
  const std::string call = scope != nullptr ? scope->call() + ": " : "";
  const std::string what = scope != nullptr && position_ >= 0
                               ? scope->operand(std::size_t(position_))
                               : "an intermediate value";
  throw Error(call + "item() of " + what + " at " + at(place) +
              ": an element value has no number yet, as it stands for every "
              "element of every tensor; choose with where() instead");
}

}  // namespace fuse
