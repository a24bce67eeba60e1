#include "fusebook/trace/operands.h"

#include <fmt/core.h>

#include "fusebook/support/call_place.h"
#include "fusebook/support/error.h"
#include "fusebook/support/source_place.h"

namespace fuse {
namespace {

[[noreturn]] void refuse_length(const Callee& callee, Operands operands,
                                std::size_t first, std::size_t k) {
  throw Error(fmt::format("{}: {} has {} tensors but {} has {}, at {}",
                          callee.function(), callee.describe(operands, k),
                          operands[k]->list.size(),
                          callee.describe(operands, first),
                          operands[first]->list.size(), callee.where()));
}

// The device of a list, or the one where it will be allocated.
const Device& device_of(const ListImpl& list) {
  return list.like != nullptr ? list.like->device : list.device;
}

[[noreturn]] void refuse_devices(const Callee& callee, Operands operands,
                                 std::size_t first, std::size_t k) {
  throw Error(fmt::format(
      "{}: {} is on {} but {} is on {}, at {}; move the tensors with to()",
      callee.function(), callee.describe(operands, k),
      to_string(device_of(*operands[k]->list.impl())),
      callee.describe(operands, first),
      to_string(device_of(*operands[first]->list.impl())), callee.where()));
}

}  // namespace

std::string Callee::where() const { return at(CallPlace::or_else(place)); }

std::string Callee::describe(Operands operands, std::size_t k) const {
  std::string text = k < outputs ? fmt::format("output {}", k + 1)
                                 : fmt::format("operand {}", k - outputs + 1);
  if (!operands[k]->is_list) return text;
  const std::string& label = operands[k]->list.impl()->label;
  return label.empty() ? text : text + " (" + label + ")";
}

const ListImpl& shapes_of(const ListImpl& list) {
  return list.like != nullptr ? *list.like : list;
}

bool check_lists(const Callee& callee, Operands operands) {
  std::size_t first = operands.size();
  std::size_t first_elements = operands.size();
  bool alike = true;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (!operands[k]->is_list) continue;
    const ListImpl& list = *operands[k]->list.impl();
    // Throws Error if the list never got a value, and thus no shapes.
    if (list.recorder == nullptr) operands[k]->list.check_computed();
    if (first == operands.size()) first = k;
    if (list.count != operands[first]->list.size()) {
      refuse_length(callee, operands, first, k);
    }
    const ListImpl& other = *operands[first]->list.impl();
    if (list.count > 0 && device_of(list) != device_of(other)) {
      refuse_devices(callee, operands, first, k);
    }
    if (list.rate != Rate::element) continue;
    if (first_elements == operands.size()) first_elements = k;
    const ListImpl& model = *operands[first_elements]->list.impl();
    alike = alike && shapes_of(list).shape_hash == shapes_of(model).shape_hash;
  }
  return alike;
}

}  // namespace fuse
