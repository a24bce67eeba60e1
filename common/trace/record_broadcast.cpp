// Records operations on lists of different shapes.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "fusebook/ir/stored_memory.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/list_registry.h"
#include "fusebook/trace/broadcast.h"
#include "fusebook/trace/recorder.h"

namespace fuse {
namespace {

bool differs(const Operand& operand, const ListShapes& to) {
  return operand.is_list && operand.list.impl()->rate == Rate::element &&
         shapes_of(*operand.list.impl()).shape_hash != to.hash;
}

[[noreturn]] void refuse_dtypes(OpCode op, DType dtype,
                                std::source_location place) {
  const Callee callee = {"foreach_", name_of(op), place};
  throw Error(callee.function() +
              ": a list mixes 0-d tensors with others in places where another "
              "list does not, so that only some results would be " +
              name_of(dtype) + ", at " + callee.where() +
              "; convert the list with foreach_to");
}

using Ids = std::pair<std::uint64_t, std::uint64_t>;

struct MixIds {
  std::size_t operator()(const Ids& ids) const {
    return std::size_t(mix_hash(ids.first, ids.second));
  }
};

bool compare_places(const ListImpl& a, const ListImpl& b) {
  const auto visit = [](const ListImpl& list, auto use) {
    for (std::size_t i = 0; i < list.count; ++i) {
      const auto at = reinterpret_cast<std::uintptr_t>(list.addresses[i]);
      use(at, at + list.extent_bytes(i));
    }
  };
  StoredMemory places;
  visit(a, [&](auto begin, auto end) { places.add(begin, end); });
  places.settle();
  bool meet = false;
  visit(b, [&](auto begin, auto end) {
    meet = meet || places.touches(begin, end);
  });
  return meet;
}

// True if tensors of two lists may share bytes. An identity always refers to
// the same memory, so each pair of lists is compared once.
bool may_meet(const ListImpl& a, const ListImpl& b) {
  constexpr std::size_t most_pairs = 4096;
  if (a.id == b.id) return true;
  if (a.end <= b.begin || b.end <= a.begin) return false;
  static thread_local std::unordered_map<Ids, bool, MixIds> known;
  const Ids ids = {a.id, b.id};
  if (const auto at = known.find(ids); at != known.end()) return at->second;
  if (known.size() >= most_pairs) known.clear();
  return known[ids] = compare_places(a, b);
}

// True if what a load reads may have been overwritten.
bool is_overwritten(const Program& program,
                    std::span<const std::shared_ptr<ListImpl>> lists,
                    const ListImpl& list, ValueId load) {
  const auto stores = program.store_events();
  for (std::size_t k = stores.size(); k > 0; --k) {
    const StoreEvent& store = stores[k - 1];
    if (store.at <= load) return false;
    if (may_meet(list, *lists[store.slot])) return true;
  }
  return false;
}

}  // namespace

// The operands of one operation, in one shape. Must not be moved, since they
// point into themselves.
class Recorder::Alike {
 public:
  Alike(Recorder& recorder, OpCode op, Operands operands, const ListShapes& to,
        std::source_location place)
      : count_(operands.size()) {
    for (std::size_t k = 0; k < count_; ++k) {
      all_[k] = operands[k];
      if (!differs(*operands[k], to)) continue;
      put(k, recorder.broadcast(operands[k]->list, to, place));
    }
    convert_numbers(recorder, op, place);
  }
  Alike(const Alike&) = delete;
  Alike& operator=(const Alike&) = delete;
  ~Alike() = default;

  Operands operands() const { return std::span(all_).first(count_); }

 private:
  void put(std::size_t k, TensorList list) {
    made_[k].emplace(std::move(list));
    all_[k] = &*made_[k];
  }

  bool is_elements(std::size_t k) const {
    return all_[k]->is_list && all_[k]->list.impl()->rate == Rate::element;
  }
  FromNumbers from_numbers(std::size_t k) const {
    return made_[k] ? shapes_of(*made_[k]->list.impl()).from_numbers
                    : FromNumbers::none;
  }

  // Tensors without dimensions do not affect the dtype of others, as in torch.
  void convert_numbers(Recorder& recorder, OpCode op,
                       std::source_location place) {
    std::optional<DType> dtype;
    for (std::size_t k = 0; k < count_; ++k) {
      if (!is_elements(k) || from_numbers(k) != FromNumbers::none) continue;
      const DType own = all_[k]->list.impl()->dtype;
      dtype = dtype ? promote(*dtype, own) : own;
    }
    for (std::size_t k = 0; dtype && k < count_; ++k) {
      if (from_numbers(k) == FromNumbers::none) continue;
      const TensorList& list = made_[k]->list;
      const DType own = list.impl()->dtype;
      if (promote(*dtype, own) == *dtype) continue;
      if (from_numbers(k) == FromNumbers::some) refuse_dtypes(op, own, place);
      const ValueId value = recorder.value_of(list, place);
      const auto& like = list.impl()->like;
      put(k, recorder.pending_in(recorder.program_.cast(value, *dtype, place),
                                 like != nullptr ? like : list.impl()));
    }
  }

  std::array<const Operand*, 4> all_{};
  std::array<std::optional<Operand>, 4> made_;
  std::size_t count_;
};

TensorList Recorder::apply_to_shapes(OpCode op, Operands operands,
                                     std::source_location place) {
  const SharedShapes to =
      broadcast_shapes({"foreach_", name_of(op), place}, operands);
  const bool any_on_gpu = touch(operands);
  flush_unspread(operands, *to, place);
  const Alike alike(*this, op, operands, *to, place);
  const ValueId value = record_alike(op, alike.operands(), any_on_gpu, place);
  return pending(value, alike.operands());
}

ValueId Recorder::record_in_shapes(OpCode op, Operands operands,
                                   const ListShapes& to,
                                   std::source_location place) {
  const bool any_on_gpu = touch(operands);
  flush_unspread(operands, to, place);
  const Alike alike(*this, op, operands, to, place);
  return record_alike(op, alike.operands(), any_on_gpu, place);
}

// Starts the operation. Values that cannot be recomputed for larger tensors are
// first computed in their own shapes.
void Recorder::flush_unspread(Operands operands, const ListShapes& to,
                              std::source_location place) {
  program_.begin_operation();
  const bool all = std::all_of(
      operands.begin(), operands.end(), [&](const Operand* operand) {
        if (!differs(*operand, to)) return true;
        const ListImpl& list = *operand->list.impl();
        return list.recorder != this || spread(list.value, to, place) >= 0;
      });
  if (all) return;
  flush("a list is broadcast before it is computed");
  program_.begin_operation();
}

// A list in memory is viewed as a larger one; a value not computed yet is
// recomputed for the larger tensors instead.
TensorList Recorder::broadcast(const TensorList& list, const ListShapes& to,
                               std::source_location place) {
  const auto& impl = list.impl();
  if (impl->recorder != this) return TensorList(broadcast_list(impl, to));
  return pending_in(spread(impl->value, to, place),
                    broadcast_list(impl->like, to));
}

TensorList Recorder::pending_in(ValueId value,
                                const std::shared_ptr<ListImpl>& like) {
  const Operand model{TensorList(like)};
  const Operand* const operands[] = {&model};
  return pending(value, operands);
}

// The value in other shapes, to which its own broadcast: the same operations on
// broadcast lists. -1 if it must be in memory first.
ValueId Recorder::spread(ValueId value, const ListShapes& to,
                         std::source_location place) {
  if (program_.node(value).rate != Rate::element) return value;
  const auto at = std::size_t(value);
  if (spread_.size() <= at) spread_.resize(program_.nodes().size());
  if (spread_[at].shapes != to.hash) {
    const ValueId found = spread_anew(value, to, place);
    if (found < 0) return found;
    spread_[at] = {to.hash, found};
  }
  return spread_[at].value;
}

ValueId Recorder::spread_anew(ValueId value, const ListShapes& to,
                              std::source_location place) {
  const Node node = program_.node(value);
  if (node.op == OpCode::load) {
    const std::shared_ptr<ListImpl> list = held_[node.in[0]];
    if (is_overwritten(program_, held_, *list, value)) return -1;
    return program_.load(slot_of(broadcast_list(list, to)), place);
  }
  std::array<ValueId, 4> in{};
  bool over_lists = false;
  for (std::size_t k = 0; k < node.arity; ++k) {
    in[k] = spread(node.in[k], to, place);
    if (in[k] < 0) return -1;
    over_lists = over_lists || program_.node(in[k]).rate == Rate::element;
  }
  // A number used for every element does not determine how many there are.
  if (!over_lists) return -1;
  return program_.append_like(node, std::span(in).first(node.arity), -1, place);
}

}  // namespace fuse
