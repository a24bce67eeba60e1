#include "fusebook/trace/recorder.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "fusebook/support/error.h"
#include "fusebook/support/source_place.h"
#include "fusebook/tensor/tensor_layout.h"
#include "fusebook/trace/map_scope.h"

namespace fuse {
namespace {

// Memory used by a pending recording must not be accessed half-way.
void before_access(const TensorImpl& tensor, bool write) {
  if (const MapScope* scope = MapScope::current()) scope->refuse_read(tensor);
  Recorder* const recorder = Recorder::current();
  if (recorder == nullptr) return;
  if (recorder->involves(tensor, !write)) {
    recorder->flush(write ? "a recorded tensor is modified from outside"
                          : "a tensor is read before it is computed");
  }
  if (write) recorder->outside_write(tensor);
}

// Lists of gradients do not hold them, and the kernel still has to run.
void keep_gradient(std::shared_ptr<TensorImpl> gradient) {
  Recorder* const recorder = Recorder::current();
  if (recorder != nullptr) recorder->keep(std::move(gradient));
}

// The list an operation writes into must fit the result. Returns its shapes if
// operands with other shapes broadcast to them; else null.
SharedShapes check_target(OpCode op, const TensorList& target,
                          Operands operands, std::source_location place) {
  const Callee callee = {"foreach_", name_of(op), place};
  const Operand& from = *operands.front();
  const bool alike = check_lists(callee, operands);
  if (from.is_list && from.list.impl() == target.impl()) {
    return alike ? nullptr : target_shapes(callee, operands, 0);
  }
  const Operand as_operand(target);
  SharedShapes shapes;
  if (!alike) shapes = broadcast_shapes(callee, operands);
  for (const Operand* operand : operands) {
    if (!operand->is_list) continue;
    const std::array pair = {&as_operand, operand};
    if (!check_lists(callee, pair)) shapes = target_shapes(callee, pair, 0);
  }
  return shapes;
}

// Numbers stored in the target of a single operation are read before it is
// written. In a recording, which may write to the target at any time, they are
// an error.
class ReadFirst {
 public:
  ReadFirst(const TensorList& target, Operands operands, bool recording)
      : operands_(operands) {
    if (recording) return;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const Operand& operand = *operands[k];
      if (operand.is_list || !operand.scalar.is_tensor()) continue;
      if (!operand.scalar.is_on_gpu() || !lies_in(operand, target)) continue;
      replace(k);
    }
  }
  ReadFirst(const ReadFirst&) = delete;
  ReadFirst& operator=(const ReadFirst&) = delete;

  Operands operands() const { return operands_; }

 private:
  static bool lies_in(const Operand& number, const TensorList& list) {
    const TensorImpl& impl = *number.scalar.tensor().impl();
    return std::any_of(list.begin(), list.end(), [&](const Tensor& each) {
      return share_bytes(*each.impl(), impl);
    });
  }

  void replace(std::size_t k) {
    if (replaced_.empty()) {
      std::copy(operands_.begin(), operands_.end(), all_.begin());
      operands_ = std::span(all_).first(operands_.size());
      replaced_.reserve(operands_.size());
    }
    Scalar number(all_[k]->scalar.value());
    number.set_origin(all_[k]->scalar.origin());
    replaced_.emplace_back(std::move(number));
    all_[k] = &replaced_.back();
  }

  Operands operands_;
  std::array<const Operand*, 4> all_{};
  std::vector<Operand> replaced_;
};

}  // namespace

Recorder::Recorder(Executor& executor, bool bake)
    : executor_(executor), bake_(bake) {}

Recorder::~Recorder() { abandon(); }

// Empty lists have no device.
const ListImpl* Recorder::first_placed() const {
  for (const auto& list : held_) {
    if (list->count > 0) return list.get();
  }
  return nullptr;
}

// A kernel can access the memory of only one device.
void Recorder::check_device(const ListImpl& list) const {
  const ListImpl* const first = first_placed();
  if (first == nullptr || list.count == 0) return;
  if (first->device == list.device) return;
  const auto name = [](const ListImpl& each) {
    if (!each.label.empty()) return each.label;
    return std::string(each.rate == Rate::uniform ? "a number" : "a list");
  };
  throw Error(fmt::format(
      "{} is on {} but {} is on {}; a launch runs on one device: move the "
      "tensors with to(), or compile a function for each",
      name(*first), to_string(first->device), name(list),
      to_string(list.device)));
}

std::int32_t Recorder::slot_of(const std::shared_ptr<ListImpl>& list) {
  check_device(*list);
  const std::int32_t slot = program_.slot(list->view(), list->info());
  if (std::size_t(slot) == held_.size()) held_.push_back(list);
  return slot;
}

ValueId Recorder::value_of(const TensorList& list, std::source_location place) {
  const auto& impl = list.impl();
  if (impl->recorder == this) return impl->value;
  list.check_computed();
  return program_.load(slot_of(impl), place);
}

// True for numbers in the memory of the device that the program runs on.
bool Recorder::loads(const Scalar& scalar) const {
  if (!scalar.is_on_gpu()) return false;
  if (scalar.recorded(serial()) >= 0) return true;
  const Tensor memory = scalar.memory();
  if (!memory.defined()) return false;
  const ListImpl* const first = first_placed();
  return first == nullptr || first->device == memory.device();
}

ValueId Recorder::load(const Scalar& number, std::source_location place) {
  const Origin& origin = number.origin();
  std::string label = origin.name != nullptr ? origin.name : "";
  if (!label.empty() && origin.index >= 0) {
    label += std::to_string(origin.index + 1);
  }
  return program_.load(slot_of(number_list(number.memory(), label)), place);
}

ValueId Recorder::value_of(const Scalar& scalar, std::source_location place) {
  const ValueId known = scalar.recorded(serial());
  if (known >= 0) return known;
  if (loads(scalar)) return load(scalar, place);
  const bool fixed = bake_ && !scalar.is_tensor() && !scalar.is_recorded();
  return program_.scalar(fixed ? OpCode::constant : OpCode::argument,
                         {scalar.number(), scalar.origin()});
}

// Numbers of groups go with the lists of these groups; for other lists all
// groups must agree.
void Recorder::check_groups(Operands operands, std::size_t count) {
  for (const Operand* operand : operands) {
    const auto& column = operand->scalar.column();
    if (column == nullptr) continue;
    if (column->groups->of_tensor.size() == count) continue;
    static_cast<void>(operand->scalar.value());
  }
}

ValueId Recorder::record_scalar(OpCode op,
                                std::span<const Scalar* const> operands,
                                std::source_location place) {
  std::array<ValueId, 4> in{};
  for (std::size_t k = 0; k < operands.size(); ++k) {
    in[k] = value_of(*operands[k], place);
  }
  return program_.apply(op, std::span(in).first(operands.size()), place);
}

void Recorder::take_slots(Operands operands) {
  for (const Operand* operand : operands) {
    if (!operand->is_list) continue;
    const auto& impl = operand->list.impl();
    if (impl->recorder != this) slot_of(impl);
  }
}

// Blocks do not give back what is stored, so it has to be stored first, and a
// kernel draws once for a list.
void Recorder::touch_blocks(const ListImpl& list) {
  if (list.dtype == DType::position && program_.uses(list.id)) {
    flush("random bits are drawn again for the same tensors");
  }
  if (list.recorder != nullptr || !in_blocks(list.dtype)) return;
  if (!program_.uses(list.id)) return;
  const std::int32_t slot = program_.slot(list.view(), list.info());
  if (program_.first_store(slot) < 0) return;
  flush("a list in blocks of 8 bits is used again after it was stored");
}

// A list or a 0-d tensor may flush the recording, so all are touched before
// anything is recorded. True if a number is on a GPU.
bool Recorder::touch(Operands operands) {
  bool any_on_gpu = false;
  for (const Operand* operand : operands) {
    if (operand->is_list) {
      const auto& impl = operand->list.impl();
      if (impl->recorder != nullptr && impl->recorder != this) {
        operand->list.check_computed();
      }
      touch_blocks(*impl);
    } else if (operand->scalar.is_on_gpu()) {
      operand->scalar.touch();
      any_on_gpu = true;
    } else if (operand->scalar.column() == nullptr) {
      static_cast<void>(operand->scalar.value());
    }
  }
  return any_on_gpu;
}

ValueId Recorder::record(OpCode op, Operands operands,
                         std::source_location place) {
  const bool any_on_gpu = touch(operands);
  program_.begin_operation();
  return record_alike(op, operands, any_on_gpu, place);
}

ValueId Recorder::record_alike(OpCode op, Operands operands, bool any_on_gpu,
                               std::source_location place) {
  if (any_on_gpu) take_slots(operands);  // the slots determine which GPU
  std::array<ValueId, 4> in{};
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const Operand* const operand = operands[k];
    in[k] = operand->is_list ? value_of(operand->list, place)
                             : value_of(operand->scalar, place);
  }
  return program_.apply(op, std::span(in).first(operands.size()), place);
}

// A repeated step makes the same lists again, so nothing is allocated.
std::shared_ptr<ListImpl> Recorder::take_spare() {
  if (spare_.empty()) return std::make_shared<ListImpl>();
  std::shared_ptr<ListImpl> impl = std::move(spare_.back());
  spare_.pop_back();
  return impl;
}

TensorList Recorder::pending(ValueId value, Operands operands) {
  const Node& node = program_.node(value);
  std::shared_ptr<ListImpl> impl = take_spare();
  impl->recorder = this;
  impl->value = value;
  impl->rate = node.rate;
  impl->dtype = node.dtype;
  for (const Operand* operand : operands) {
    if (!operand->is_list) continue;
    const auto& list = operand->list.impl();
    impl->count = list->count;
    if (list->rate != node.rate) continue;
    const auto& like = list->like != nullptr ? list->like : list;
    if (impl->like == nullptr || !like->repeats) impl->like = like;
    if (!like->repeats) break;
  }
  pending_.push_back(impl);
  return TensorList(std::move(impl));
}

TensorList Recorder::apply(OpCode op, Operands operands,
                           std::source_location place) {
  const auto list =
      std::find_if(operands.begin(), operands.end(),
                   [](const Operand* operand) { return operand->is_list; });
  if (list == operands.end()) {
    throw Error("foreach_" + std::string(name_of(op)) +
                ": no operand is a list of tensors, at " + at(place));
  }
  check_groups(operands, (*list)->list.size());
  if (!check_lists({"foreach_", name_of(op), place}, operands)) {
    return apply_to_shapes(op, operands, place);
  }
  return pending(record(op, operands, place), operands);
}

TensorList Recorder::cast(const TensorList& list, DType dtype,
                          std::source_location place) {
  const Operand operand(list);
  const Operand* const operands[] = {&operand};
  touch_blocks(*list.impl());
  program_.begin_operation();
  ValueId value = value_of(list, place);
  // Decoding is an operation of its own, behind which a program may be cut.
  if (list.impl()->recorder == nullptr && in_blocks(list.impl()->dtype)) {
    value = program_.apply(OpCode::copy, std::array{value}, place);
  }
  return pending(program_.cast(value, dtype, place), operands);
}

void Recorder::apply_into(OpCode op, const TensorList& target,
                          Operands operands, std::source_location place) {
  const SharedShapes shapes = check_target(op, target, operands, place);
  check_groups(operands, target.size());
  const auto& impl = target.impl();
  if (impl->recorder != this) {
    target.check_computed();
    executor_.before_store(op, target, operands, place);
    touch_blocks(*impl);
  }
  const ReadFirst numbers(target, operands, bake_);
  touch_skips();
  const ValueId value =
      shapes == nullptr
          ? record(op, numbers.operands(), place)
          : record_in_shapes(op, numbers.operands(), *shapes, place);
  if (impl->recorder == this) {
    impl->value =
        program_.convert_like(value, impl->info(), impl->value, place);
  } else {
    const ValueId stored = unless_skipped(target, value, place);
    program_.store(slot_of(impl), stored, place);
  }
}

// Called for every rate of many groups; hardly any list is near one.
bool Recorder::involves(const TensorImpl& tensor, bool stores_only) {
  for (std::size_t s = places_.size(); s < held_.size(); ++s) {
    places_.add(held_[s]->begin, held_[s]->end);
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(tensor.data);
  const auto end = begin + extent_bytes(tensor);
  return places_.any_of(begin, end, [&](std::size_t s) {
    const bool plays =
        !stores_only || program_.first_store(std::int32_t(s)) >= 0;
    return plays && held_[s]->meets(tensor);
  });
}

bool Recorder::uses(const ListImpl& list) const {
  return list.recorder == this || program_.uses(list.id) ||
         std::any_of(list.broadcasts.begin(), list.broadcasts.end(),
                     [&](const auto& views) { return uses(*views); });
}

void watch_accesses() {
  set_access_hook(&before_access);
  set_release_hook(&keep_gradient);
}

Recording::Recording(Recorder& recorder) {
  watch_accesses();
  recorder.failed_ = false;
  previous_ = Recorder::make_current(&recorder);
}

Recording::~Recording() { Recorder::make_current(previous_); }

}  // namespace fuse
