#include "fusebook/foreach/foreach_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

#include "fusebook/foreach/foreach.h"
#include "fusebook/foreach/output_aliasing.h"
#include "fusebook/support/error.h"
#include "fusebook/support/source_place.h"
#include "fusebook/tensor/tensor_layout.h"
#include "fusebook/trace/broadcast.h"
#include "fusebook/trace/recorder.h"

namespace fuse {
namespace {

std::size_t length_of(std::span<const MapOperand> operands) {
  for (const MapOperand& each : operands) {
    if (each.operand().is_list) return each.operand().list.size();
  }
  return 0;
}

bool same_list(const Operand& a, const Operand& b) {
  const ListImpl& x = *a.list.impl();
  const ListImpl& y = *b.list.impl();
  return &x == &y || (x.id != 0 && x.id == y.id);
}

}  // namespace

MapOperand::MapOperand(const Tensor& tensor, Place place)
    : operand_(0.0, place), place_(place) {
  if (!tensor.defined()) {
    throw Error("an operand of foreach_map at " + at(place) +
                " is an undefined tensor");
  }
  if (tensor.dim() == 0) {
    operand_ = Operand(tensor, place);
  } else {
    repeated_ = tensor;
  }
}

void MapOperand::repeat(std::size_t count) {
  check_defined(repeated_, "the tensor to repeat");
  operand_ =
      Operand(TensorList(std::vector<Tensor>(count, repeated_), "tensor"));
}

void MapOperand::number(int position) {
  Scalar& scalar = operand_.scalar;
  if (operand_.is_list || scalar.origin().name != nullptr) return;
  Origin origin = scalar.origin();
  origin.index = position;
  scalar.set_origin(origin);
}

MapCall::MapCall(std::string_view function, std::span<MapOperand> operands,
                 std::span<const Operand*> pointers, std::size_t outputs)
    : callee_{function, "", operands[0].place(), outputs}, operands_(pointers) {
  if (const Recorder* const recorder = Recorder::current()) {
    begin_ = recorder->begin_call();
  }
  if (const MapScope* scope = MapScope::current()) {
    scope->refuse_list_call(callee_.function(), callee_.place);
  }
  check_given(operands);
  const std::size_t length = length_of(operands);
  for (std::size_t k = 0; k < operands.size(); ++k) {
    pointers[k] = &operands[k].operand();
  }
  if (outputs > 0) check_outputs(operands);
  if (std::none_of(pointers.begin(), pointers.end(),
                   [](const Operand* operand) { return operand->is_list; })) {
    refuse("no operand is a list of tensors");
  }
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (operands[k].is_repeated()) operands[k].repeat(length);
    operands[k].number(int(k - std::min(k, outputs)) + 1);
  }
  if (!check_lists(callee_, operands_)) broadcast_shapes(callee_, operands_);
}

void MapCall::refuse(const std::string& what) const {
  throw Error(callee_.function() + ": " + what + ", at " + at(callee_.place));
}

void MapCall::check_given(std::span<const MapOperand> operands) const {
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const Operand& operand = operands[k].operand();
    if (!operand.is_list || operand.list.defined()) continue;
    refuse((k < callee_.outputs
                ? fmt::format("output {}", k + 1)
                : fmt::format("operand {}", k - callee_.outputs + 1)) +
           " was moved from");
  }
}

void MapCall::refuse_nothing() const {
  refuse("the function returns nothing; let it return the new value");
}

// Each output must be a list, and appear only once.
void MapCall::check_outputs(std::span<const MapOperand> operands) const {
  for (std::size_t k = 0; k < callee_.outputs; ++k) {
    if (!operands[k].operand().is_list) {
      refuse(callee_.describe(operands_, k) + " is not a list of tensors");
    }
    for (std::size_t j = 0; j < k; ++j) {
      if (!same_list(*operands_[j], *operands_[k])) continue;
      refuse(callee_.describe(operands_, k) + " is the same list as " +
             callee_.describe(operands_, j) + "; name each output once");
    }
  }
}

// A number stored in an output is read before the output is written.
Operand MapCall::number_of(const Operand& result) const {
  const Scalar& scalar = result.scalar;
  // Numbers of groups were read when the step began.
  if (!scalar.is_tensor() || scalar.column() != nullptr) return result;
  for (std::size_t k = 0; k < callee_.outputs; ++k) {
    for (const Tensor& tensor : operands_[k]->list.impl()->handles()) {
      if (!share_bytes(*tensor.impl(), *scalar.tensor().impl())) continue;
      Scalar now(scalar.value());
      Origin origin = scalar.origin();
      origin.moves = true;
      now.set_origin(origin);
      return Operand(now);
    }
  }
  return result;
}

// A result that is an operand, or also another result, is copied to a value of
// its own: the operand may be overwritten.
Operand MapCall::value_of(std::span<const Element> results,
                          std::size_t k) const {
  const Element& result = results[k];
  if (result.operand().is_list && !result.operand().list.defined()) {
    refuse(fmt::format("result {} of the function was moved from", k + 1));
  }
  if (!result.operand().is_list) return number_of(result.operand());
  const bool again =
      std::any_of(results.begin(), results.begin() + std::ptrdiff_t(k),
                  [&](const Element& other) {
                    return other.operand().is_list &&
                           same_list(other.operand(), result.operand());
                  });
  if (result.position() < 0 && !again) return result.operand();
  return foreach_copy(result.operand(), callee_.place);
}

TensorList MapCall::list_of(std::span<const Element> results,
                            std::size_t k) const {
  if (!results[k].operand().is_list) {
    refuse(fmt::format(
        "result {} of the function is a number that does not depend on any "
        "list; combine it with an element, or use foreach_map_, which repeats "
        "it",
        k + 1));
  }
  return value_of(results, k).list;
}

void MapCall::check_results(std::span<const Element> results) const {
  if (results.size() != callee_.outputs) {
    refuse(fmt::format("the function returns {} {} for {} {}", results.size(),
                       results.size() == 1 ? "value" : "values",
                       callee_.outputs,
                       callee_.outputs == 1 ? "output" : "outputs"));
  }
  for (std::size_t k = 0; k < results.size(); ++k) {
    const Operand& result = results[k].operand();
    const Rate room = operands_[k]->list.impl()->rate;
    if (!result.is_list || !result.list.defined()) continue;
    if (result.list.impl()->rate <= room) {
      check_result(callee_, operands_, k, result.list);
      continue;
    }
    refuse(fmt::format(
        "result {} of the function varies by element, but {} holds one number "
        "per tensor",
        k + 1, callee_.describe(operands_, k)));
  }
}

void MapCall::store(std::span<Element> results) const {
  check_results(results);
  // A recording is checked as a whole, when its addresses are bound.
  if (Recorder::current() == nullptr)
    check_overlap(callee_, operands_, results);
  // Compute every value before writing the first.
  for (std::size_t k = 0; k < results.size(); ++k) {
    results[k] = Element(value_of(results, k), -1);
  }
  for (std::size_t k = 0; k < results.size(); ++k) {
    const Operand* const in[] = {&results[k].operand()};
    foreach_apply_(OpCode::copy, operands_[k]->list, in, callee_.place);
  }
  if (Recorder* const recorder = Recorder::current())
    recorder->end_call(begin_);
}

}  // namespace fuse
