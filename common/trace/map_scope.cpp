#include "fusebook/trace/map_scope.h"

#include <algorithm>

#include "fusebook/support/error.h"
#include "fusebook/support/source_place.h"
#include "fusebook/tensor/tensor_layout.h"
#include "fusebook/trace/recorder.h"

namespace fuse {
namespace {

thread_local const MapScope* current_scope = nullptr;

bool holds(const Operand& operand, const TensorImpl& tensor) {
  if (!operand.is_list) {
    return operand.scalar.is_tensor() && operand.scalar.column() == nullptr &&
           share_bytes(*operand.scalar.tensor().impl(), tensor);
  }
  return operand.list.impl()->meets(tensor);
}

}  // namespace

MapScope::MapScope(const Callee& callee, Operands operands)
    : callee_(callee), operands_(operands), previous_(current_scope) {
  watch_accesses();
  current_scope = this;
}

MapScope::~MapScope() { current_scope = previous_; }

const MapScope* MapScope::current() { return current_scope; }

std::string MapScope::call() const {
  return callee_.function() + " at " + at(callee_.place);
}

std::string MapScope::operand(std::size_t k) const {
  return callee_.describe(operands_, k);
}

void MapScope::refuse_read(const TensorImpl& tensor) const {
  std::string which = "a tensor of shape " + to_string(tensor.shape);
  for (std::size_t k = 0; k < operands_.size(); ++k) {
    if (holds(*operands_[k], tensor)) which = operand(k);
  }
  throw Error(call() + ": the function reads the data of " + which +
              ", but it only describes what will run for every element; pass "
              "the tensor as an operand and choose with where()");
}

void MapScope::refuse_list_call(const std::string& what,
                                std::source_location place) const {
  throw Error(call() + ": the function calls " + what + " at " + at(place) +
              ", which works on whole lists; inside the function, use the "
              "operation on element values instead");
}

MapScope::Pause::Pause() : scope_(current_scope) { current_scope = nullptr; }

MapScope::Pause::~Pause() { current_scope = scope_; }

}  // namespace fuse
