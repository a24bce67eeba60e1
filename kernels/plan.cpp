#include "plan.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "fold.h"

namespace fuse {
namespace {

// One list domain, cut out of the program: nodes with local numbers for values,
// slots and scalars.
struct Piece {
  std::vector<Node> nodes;
  std::vector<std::source_location> places;  // one a node
  std::vector<SlotInfo> slot_infos;
  std::vector<Store> stores;
  std::vector<std::int32_t> slots;    // program slot of each local one
  std::vector<std::int32_t> scalars;  // program scalar of each local one
};

template <class T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() ||
          std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

bool same_structure(const Piece& a, const Piece& b) {
  return same_bytes(a.nodes, b.nodes) &&
         same_bytes(a.slot_infos, b.slot_infos) &&
         same_bytes(a.stores, b.stores);
}

class Cutter {
 public:
  explicit Cutter(const Program& program)
      : program_(program),
        local_value_(program.nodes().size(), -1),
        local_slot_(program.slots().size(), -1) {}

  // All domains that store anything, in the order of their first store.
  std::vector<Piece> cut() {
    std::map<int, std::size_t> piece_of_domain;
    std::vector<std::vector<Store>> stores;
    for (const Store& store : program_.stores()) {
      const int domain = program_.domain(store.value);
      const auto [at, added] =
          piece_of_domain.try_emplace(domain, stores.size());
      if (added) stores.emplace_back();
      stores[at->second].push_back(store);
    }
    std::vector<Piece> pieces;
    for (const auto& list : stores) pieces.push_back(cut_one(list));
    return pieces;
  }

 private:
  Piece cut_one(const std::vector<Store>& stores) {
    Piece piece;
    std::vector<ValueId> touched;
    for (const Store& store : stores) collect(store.value, touched);
    std::sort(touched.begin(), touched.end());
    for (const ValueId id : touched) take(id, piece);
    for (const Store& store : stores) {
      const std::int32_t slot = take_slot(store.slot, piece);
      piece.stores.push_back({slot, local_value_[std::size_t(store.value)]});
    }
    for (const ValueId id : touched) local_value_[std::size_t(id)] = -1;
    for (const std::int32_t slot : piece.slots) {
      local_slot_[std::size_t(slot)] = -1;
    }
    return piece;
  }

  // Everything a value depends on; -2 marks what was seen.
  void collect(ValueId root, std::vector<ValueId>& touched) {
    std::vector<ValueId> open = {root};
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      if (local_value_[std::size_t(id)] != -1) continue;
      local_value_[std::size_t(id)] = -2;
      touched.push_back(id);
      const Node& node = program_.node(id);
      open.insert(open.end(), node.in, node.in + node.arity);
    }
  }

  void take(ValueId id, Piece& piece) {
    Node node = program_.node(id);
    if (node.op == OpCode::load) {
      node.in[0] = take_slot(node.in[0], piece);
    } else if (node.arity == 0) {
      piece.scalars.push_back(node.in[0]);
      node.in[0] = std::int32_t(piece.scalars.size()) - 1;
    }
    for (int k = 0; k < node.arity; ++k) {
      node.in[k] = local_value_[std::size_t(node.in[k])];
    }
    local_value_[std::size_t(id)] = std::int32_t(piece.nodes.size());
    piece.nodes.push_back(node);
    piece.places.push_back(program_.place(id));
  }

  std::int32_t take_slot(std::int32_t slot, Piece& piece) {
    std::int32_t& local = local_slot_[std::size_t(slot)];
    if (local < 0) {
      local = std::int32_t(piece.slots.size());
      piece.slots.push_back(slot);
      piece.slot_infos.push_back(program_.slots()[std::size_t(slot)]);
    }
    return local;
  }

  const Program& program_;
  std::vector<std::int32_t> local_value_;
  std::vector<std::int32_t> local_slot_;
};

bool same_bits(double a, double b) {
  return std::memcmp(&a, &b, sizeof(double)) == 0;
}

// Turns pieces of one structure into a body and its instances.
class BodyMaker {
 public:
  BodyMaker(const Program& program, Plan& plan, MayBake may_bake, void* context)
      : program_(program),
        plan_(plan),
        may_bake_(may_bake),
        context_(context) {}

  void make(const std::vector<const Piece*>& pieces) {
    const Piece& first = *pieces.front();
    body_ = Body{};
    instances_.clear();
    for (const Piece* piece : pieces) {
      instances_.push_back({int(plan_.bodies.size()), piece->slots, {}});
    }
    make_slots(first);
    for (std::size_t i = 0; i < first.nodes.size(); ++i) {
      add_node(first.nodes[i], pieces);
      body_.nodes.back().place = first.places[i];
    }
    body_.stores = first.stores;
    raise_rates();
    simplify(body_);
    mark_slots();
    plan_.column_count = std::max(plan_.column_count, body_.columns);
    plan_.bodies.push_back(std::move(body_));
    plan_.instances.insert(plan_.instances.end(), instances_.begin(),
                           instances_.end());
  }

 private:
  const ScalarLeaf& leaf(std::int32_t scalar) const {
    return program_.scalars()[std::size_t(scalar)];
  }

  void make_slots(const Piece& piece) {
    for (std::size_t i = 0; i < piece.slots.size(); ++i) {
      const SlotInfo info = piece.slot_infos[i];
      const char* label = program_.lists()[std::size_t(piece.slots[i])].label;
      body_.slots.push_back({info.dtype, info.rate, false, false,
                             label != nullptr ? label : "list", info.strided});
    }
  }

  void add_node(const Node& node, const std::vector<const Piece*>& pieces) {
    BodyNode added;
    added.op = node.op;
    added.rate = node.rate;
    added.dtype = node.dtype;
    added.arity = node.arity;
    std::copy(node.in, node.in + node.arity, added.in);
    if (node.op == OpCode::load) added.index = node.in[0];
    if (node.op == OpCode::constant || node.op == OpCode::argument) {
      add_scalar(added, std::size_t(node.in[0]), pieces);
    }
    body_.nodes.push_back(added);
  }

  void add_scalar(BodyNode& node, std::size_t local,
                  const std::vector<const Piece*>& pieces) {
    const ScalarLeaf& first = leaf(pieces.front()->scalars[local]);
    node.origin = first.origin;
    if (node.op == OpCode::constant && bakes(local, pieces)) {
      node.value = first.value;
      for (const Piece* piece : pieces) {
        plan_.guards.push_back({piece->scalars[local], first.value});
      }
      return;
    }
    node.op = OpCode::argument;
    if (pieces.size() == 1) {
      node.index = std::int32_t(plan_.args.size());
      plan_.args.push_back(pieces.front()->scalars[local]);
      return;
    }
    node.rate = Rate::entry;
    node.index = body_.columns++;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      instances_[i].columns.push_back(pieces[i]->scalars[local]);
    }
  }

  bool bakes(std::size_t local, const std::vector<const Piece*>& pieces) const {
    const ScalarLeaf& first = leaf(pieces.front()->scalars[local]);
    return std::all_of(pieces.begin(), pieces.end(), [&](const Piece* piece) {
      const ScalarLeaf& other = leaf(piece->scalars[local]);
      return may_bake_(context_, other.origin) &&
             same_bits(other.value, first.value);
    });
  }

  // What depends on a column changes with it.
  void raise_rates() {
    for (BodyNode& node : body_.nodes) {
      for (int k = 0; k < node.arity; ++k) {
        const Rate rate = body_.nodes[std::size_t(node.in[k])].rate;
        node.rate = std::max(node.rate, rate);
      }
    }
  }

  void mark_slots() {
    for (const BodyNode& node : body_.nodes) {
      if (node.op == OpCode::load) {
        body_.slots[std::size_t(node.index)].loaded = true;
      }
    }
    for (const Store& store : body_.stores) {
      body_.slots[std::size_t(store.slot)].stored = true;
    }
  }

  const Program& program_;
  Plan& plan_;
  MayBake may_bake_;
  void* context_;
  Body body_;
  std::vector<Instance> instances_;
};

template <class Weight>
std::int64_t total(const Body& body, Weight weight) {
  std::int64_t sum = 0;
  for (const BodySlot& slot : body.slots) {
    const int passes = int(slot.loaded) + int(slot.stored);
    if (weight(slot)) sum += passes * std::int64_t(size_of(slot.dtype));
  }
  return sum;
}

}  // namespace

std::int64_t Body::bytes_per_element() const {
  return total(*this,
               [](const BodySlot& slot) { return slot.rate == Rate::element; });
}

std::int64_t Body::bytes_per_entry() const {
  return total(*this,
               [](const BodySlot& slot) { return slot.rate == Rate::entry; });
}

bool Body::strided() const {
  return std::any_of(slots.begin(), slots.end(),
                     [](const BodySlot& slot) { return slot.strided; });
}

bool Plan::matches(const Program& program) const {
  const auto scalars = program.scalars();
  return std::all_of(guards.begin(), guards.end(), [&](const Guard& guard) {
    return same_bits(scalars[std::size_t(guard.scalar)].value, guard.value);
  });
}

Plan make_plan(const Program& program, MayBake may_bake, void* context) {
  const std::vector<Piece> pieces = Cutter(program).cut();
  std::vector<std::vector<const Piece*>> classes;
  for (const Piece& piece : pieces) {
    auto same = std::find_if(
        classes.begin(), classes.end(),
        [&](const auto& c) { return same_structure(*c.front(), piece); });
    if (same == classes.end()) same = classes.insert(classes.end(), {{}});
    same->push_back(&piece);
  }
  Plan plan;
  BodyMaker maker(program, plan, may_bake, context);
  for (const auto& pieces_of_class : classes) maker.make(pieces_of_class);
  return plan;
}

}  // namespace fuse
