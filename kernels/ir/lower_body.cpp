#include "fusebook/ir/lower_body.h"

#include <algorithm>

#include "fusebook/ir/simplify.h"
#include "fusebook/ops/reductions.h"
#include "fusebook/support/error.h"

namespace fuse {
namespace {

using Kind = ScalarUse::Kind;

void place_scalar(BodyNode& node, const ScalarUse& use) {
  node.origin = use.origin;
  if (use.kind == Kind::baked) {
    node.op = OpCode::constant;
    node.value = use.value;
    return;
  }
  node.op = OpCode::argument;
  node.index = use.index;
  if (use.kind == Kind::column) node.rate = Rate::entry;
}

BodyNode make_node(const BodySource& source, std::size_t i) {
  const Node& node = source.nodes[i];
  BodyNode made;
  made.op = node.op;
  made.rate = node.rate;
  made.dtype = node.dtype;
  made.arity = node.arity;
  made.place = source.places[i];
  std::copy(node.in, node.in + node.arity, made.in);
  if (node.op == OpCode::load) made.index = node.in[0];
  if (node.op == OpCode::constant || node.op == OpCode::argument) {
    place_scalar(made, source.scalars[node.in[0]]);
  }
  return made;
}

// Whatever depends on a column varies with it.
void raise_rates(Body& body) {
  for (BodyNode& node : body.nodes) {
    if (is_reduction(node.op)) continue;
    for (int k = 0; k < node.arity; ++k) {
      const Rate rate = body.nodes[node.in[k]].rate;
      node.rate = std::max(node.rate, rate);
    }
  }
}

// What draws stands for what it draws from: nothing else can be done with places.
void mark_draws(const BodySource& source, Body& body) {
  for (std::size_t i = 0; i < body.nodes.size(); ++i) {
    const BodyNode& node = body.nodes[i];
    for (int k = 0; k < node.arity; ++k) {
      const BodyNode& from = body.nodes[node.in[k]];
      const bool place =
          from.op == OpCode::load &&
          source.slots[std::size_t(from.index)].dtype == DType::position;
      if (place != (node.op == OpCode::draw && k == 0)) {
        throw Error("positions of elements are there to draw random bits for");
      }
      if (!place) continue;
      BodySlot& slot = body.slots[std::size_t(from.index)];
      if (slot.draws()) {
        throw Error("random bits are drawn twice for a list of positions");
      }
      slot.draw = std::int32_t(i);
    }
  }
}

void mark_slots(Body& body) {
  for (const BodyNode& node : body.nodes) {
    if (node.op == OpCode::load) {
      body.slots[node.index].loaded = true;
    }
  }
  for (const Store& store : body.stores) {
    body.slots[store.slot].stored = true;
  }
}

}  // namespace

Body lower_body(const BodySource& source) {
  Body body;
  for (std::size_t s = 0; s < source.slots.size(); ++s) {
    const SlotInfo info = source.slots[s];
    body.slots.push_back({value_type(info.dtype), info.rate, false, false,
                          source.names[s], info.strided});
    if (in_blocks(info.dtype)) body.slots.back().blocks = info.dtype;
  }
  for (std::size_t i = 0; i < source.nodes.size(); ++i) {
    body.nodes.push_back(make_node(source, i));
  }
  body.stores = source.stores;
  for (const ScalarUse& use : source.scalars) {
    if (use.kind == Kind::column) {
      body.columns = std::max(body.columns, use.index + 1);
    }
  }
  raise_rates(body);
  simplify(body);
  mark_draws(source, body);
  mark_slots(body);
  return body;
}

}  // namespace fuse
