#include "fusebook/compile/run_eagerly.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "fusebook/device/read_number.h"
#include "fusebook/ir/alias_check.h"
#include "fusebook/ops/reductions.h"
#include "fusebook/tensor/tensor_list.h"

namespace fuse {
namespace {

// A value of the program at run time.
struct Value {
  Number number;                   // one for all tensors of a group
  ListView view;                   // otherwise: its memory
  SlotInfo info;                   // and its kind
  std::optional<TensorList> held;  // set if it owns its memory
};

Number evaluate(const Node& node, const std::vector<Value>& values) {
  std::array<Number, 4> in;
  for (std::size_t k = 0; k < node.arity; ++k) {
    in[k] = values[node.in[k]].number;
  }
  return apply_to_columns(node.op, std::span(in).first(node.arity));
}

TensorList allocate(const ListView& like, SlotInfo info) {
  const Device device = device_of_memory(info.memory);
  if (info.rate == Rate::entry) {
    return TensorList::per_tensor(scalars(like.count, info.dtype, device));
  }
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < like.count; ++i) {
    tensors.push_back(empty({like.numels[i]}, info.dtype, device));
  }
  return TensorList(std::move(tensors));
}

class Replay {
 public:
  Replay(const Program& program, Executor& eager)
      : program_(program),
        eager_(eager),
        values_(program.nodes().size()),
        last_use_(program.nodes().size(), -1) {
    const auto always = [](const Origin&) { return false; };
    // Where lists share tensors, results must wait for the last load.
    in_place_ = !check_overlaps(make_plan(program, always), program);
    find_last_uses();
  }

  void run() {
    for (ValueId id = 0; id < ValueId(values_.size()); ++id) {
      if (last_use_[id] < 0) continue;
      compute(id);
      release(id);
    }
    for (const Store& store : program_.stores()) {
      const ListView& target = program_.lists()[store.slot];
      const Value& value = values_[store.value];
      if (value.view.id == target.id) continue;
      copy(value, target, program_.slots()[store.slot]);
    }
  }

 private:
  static constexpr ValueId at_end = 1 << 30;

  // True for one number shared by all tensors.
  bool is_number(ValueId id) const { return program_.domain(id) < 0; }

  // -1 means that nothing uses the value.
  void find_last_uses() {
    for (const Store& store : program_.stores()) {
      last_use_[store.value] = at_end;
    }
    for (ValueId id = ValueId(values_.size()); id-- > 0;) {
      if (last_use_[id] < 0) continue;
      const Node& node = program_.node(id);
      for (int k = 0; k < node.arity; ++k) {
        ValueId& last = last_use_[node.in[k]];
        last = std::max(last, id);
      }
    }
  }

  void compute(ValueId id) {
    const Node& node = program_.node(id);
    Value& value = values_[id];
    if (node.op == OpCode::load && is_number(id)) {
      const std::int32_t slot = node.in[0];
      value.number.value =
          read_number(program_.lists()[slot], program_.slots()[slot]);
    } else if (node.op == OpCode::load) {
      value.view = program_.lists()[node.in[0]];
      value.info = program_.slots()[node.in[0]];
      if (last_use_[id] == at_end) keep(value);
    } else if (node.op == OpCode::constant || node.op == OpCode::argument) {
      value.number = program_.scalars()[node.in[0]];
    } else if (is_total(node.op)) {
      value.number.value = total(node);
    } else if (is_number(id)) {
      value.number = evaluate(node, values_);
    } else {
      place(id);
      launch(node, value);
    }
  }

  // One number of all tensors, by way of memory.
  double total(const Node& node) {
    const ValueId in = node.in[0];
    const SlotInfo info = {DType::float64, Rate::entry, false,
                           values_[in].info.memory};
    ListView one = values_[in].view;
    one.count = 1;
    const TensorList held = allocate(one, info);
    one_.clear();
    const ValueId result = one_.reduce(node.op, operand(in), {});
    one_.store(one_.slot(held.impl()->view(), held.impl()->info()), result, {});
    eager_.execute(one_);
    return held[0].item();
  }

  // A list copied unchanged into another one may be overwritten before the
  // copy.
  void keep(Value& value) {
    const Value old = value;
    value.held = allocate(old.view, old.info);
    value.view = value.held->impl()->view();
    copy(old, value.view, value.info);
  }

  // Places a value in the list it is stored to, if nothing else reads that
  // list; otherwise in new memory.
  void place(ValueId id) {
    const Node& node = program_.node(id);
    Value& value = values_[id];
    value.info = {node.dtype, node.rate};
    const std::int32_t slot = stored_to(id);
    const bool holds =
        slot >= 0 && !in_blocks(program_.slots()[std::size_t(slot)].dtype);
    if (holds && in_place_ && !read_after(slot, id)) {
      value.view = program_.lists()[slot];
      return;
    }
    value.held = allocate(shapes_of(id, slot), value.info);
    value.view = value.held->impl()->view();
  }

  std::int32_t stored_to(ValueId id) const {
    for (const Store& store : program_.stores()) {
      if (store.value == id) return store.slot;
    }
    return -1;
  }

  // True if the previous contents of a slot are read after `id` is computed.
  bool read_after(std::int32_t slot, ValueId id) const {
    const auto nodes = program_.nodes();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].op != OpCode::load || nodes[i].in[0] != slot) continue;
      if (last_use_[i] > id) return true;
    }
    return false;
  }

  // Any list with the sizes of a value.
  const ListView& shapes_of(ValueId id, std::int32_t slot) const {
    if (slot >= 0) return program_.lists()[slot];
    const Node& node = program_.node(id);
    for (int k = 0; k < node.arity; ++k) {
      if (is_number(node.in[k])) continue;
      const Rate rate = program_.node(node.in[k]).rate;
      if (rate != node.rate && !is_reduction(node.op)) continue;
      return values_[node.in[k]].view;
    }
    // A single number: its final store determines the list.
    std::int32_t found = -1;
    for (const Store& store : program_.stores()) {
      if (program_.domain(store.value) != program_.domain(id)) continue;
      const bool fits = program_.node(store.value).rate == node.rate;
      if (fits || found < 0) found = store.slot;
    }
    return program_.lists()[found];
  }

  ValueId operand(ValueId id) {
    const Value& value = values_[id];
    if (is_number(id)) {
      return one_.scalar(OpCode::argument, {value.number, {}});
    }
    return one_.load(one_.slot(value.view, value.info), {});
  }

  void launch(const Node& node, const Value& to) {
    one_.clear();
    std::array<ValueId, 4> in{};
    for (int k = 0; k < node.arity; ++k) {
      in[k] = operand(node.in[k]);
    }
    // A store converts anyway.
    const bool converts = node.op == OpCode::cast || node.op == OpCode::fill;
    const auto operands = std::span(in).first(node.arity);
    const ValueId result = converts ? in[0]
                           : is_reduction(node.op)
                               ? one_.reduce(node.op, in[0], {})
                               : one_.apply(node.op, operands, {});
    one_.store(one_.slot(to.view, to.info), result, {});
    eager_.execute(one_);
  }

  void copy(const Value& from, const ListView& to, SlotInfo info) {
    one_.clear();
    const ValueId loaded = one_.load(one_.slot(from.view, from.info), {});
    one_.store(one_.slot(to, info), loaded, {});
    eager_.execute(one_);
  }

  // Frees the memory of values after their last use.
  void release(ValueId id) {
    const Node& node = program_.node(id);
    for (int k = 0; k < node.arity; ++k) {
      if (last_use_[node.in[k]] > id) continue;
      values_[node.in[k]].held.reset();
    }
  }

  const Program& program_;
  Executor& eager_;
  std::vector<Value> values_;
  std::vector<ValueId> last_use_;
  bool in_place_ = false;
  Program one_;
};

}  // namespace

void replay(const Program& program, Executor& eager) {
  Replay(program, eager).run();
}

}  // namespace fuse
