#include "fusebook/foreach/map_element.h"

#include <array>

#include "fusebook/foreach/foreach.h"
#include "fusebook/support/error.h"
#include "fusebook/support/source_place.h"
#include "fusebook/trace/map_scope.h"

namespace fuse {
namespace {

bool is_elements(const Operand& operand) {
  return operand.is_list && operand.list.impl()->rate == Rate::element;
}

std::string describe(const Element& element, const MapScope* scope) {
  return scope != nullptr && element.position() >= 0
             ? scope->operand(std::size_t(element.position()))
             : "an intermediate value";
}

std::string prefix(const MapScope* scope) {
  return scope != nullptr ? scope->call() + ": " : "";
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
  const std::source_location place = operands[0]->place;
  std::array<const Operand*, 4> in{};
  bool any_list = false;
  std::uint64_t sources = 0;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    in[k] = &operands[k]->element().operand();
    any_list = any_list || in[k]->is_list;
    sources |= operands[k]->element().sources_;
  }
  const auto used = std::span(in).first(operands.size());
  Element result = any_list ? Element(foreach_apply(op, used, place), -1)
                            : apply_to_numbers(op, used, place);
  result.sources_ = sources;
  return result;
}

Element Element::convert(const Placed& a, DType dtype) {
  const MapScope::Pause pause;
  const Element& element = a.element();
  if (element.operand().is_list && !element.operand().list.defined()) {
    throw Error(prefix(pause.scope()) + "to(" + name_of(dtype) + ") at " +
                at(a.place) + ": the element was moved from");
  }
  if (!is_elements(element.operand())) {
    throw Error(prefix(pause.scope()) + "to(" + name_of(dtype) + ") of " +
                describe(element, pause.scope()) + " at " + at(a.place) +
                ": numbers and per-tensor values are always float64, only "
                "elements have a dtype; remove the conversion");
  }
  if (element.operand().list.impl()->dtype == dtype) return element;
  Element result(foreach_to(element.operand().list, dtype, a.place), -1);
  result.sources_ = element.sources_;
  return result;
}

double Element::item(std::source_location place) const {
  const MapScope* const scope = MapScope::current();
  throw Error(prefix(scope) + "item() of " + describe(*this, scope) + " at " +
              at(place) +
              ": an element value has no number yet, because it stands for "
              "every element of every tensor; choose with where() instead");
}

}  // namespace fuse
