#include "fusebook/ir/pieces.h"

#include <algorithm>
#include <map>

#include "fusebook/support/same_bytes.h"

namespace fuse {
namespace {

class Cutter {
 public:
  explicit Cutter(const Program& program)
      : program_(program),
        local_value_(program.nodes().size(), -1),
        local_slot_(program.slots().size(), -1) {}

  // All domains with stores, in the order of their first store.
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
      piece.stores.push_back({slot, local_value_[store.value]});
    }
    for (const ValueId id : touched) local_value_[id] = -1;
    for (const std::int32_t slot : piece.slots) {
      local_slot_[slot] = -1;
    }
    return piece;
  }

  // Collects everything a value depends on; -2 marks visited nodes.
  void collect(ValueId root, std::vector<ValueId>& touched) {
    std::vector<ValueId> open = {root};
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      if (local_value_[id] != -1) continue;
      local_value_[id] = -2;
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
      node.in[k] = local_value_[node.in[k]];
    }
    local_value_[id] = std::int32_t(piece.nodes.size());
    piece.nodes.push_back(node);
    piece.places.push_back(program_.place(id));
  }

  std::int32_t take_slot(std::int32_t slot, Piece& piece) {
    std::int32_t& local = local_slot_[slot];
    if (local < 0) {
      local = std::int32_t(piece.slots.size());
      piece.slots.push_back(slot);
      piece.slot_infos.push_back(program_.slots()[slot]);
    }
    return local;
  }

  const Program& program_;
  std::vector<std::int32_t> local_value_;
  std::vector<std::int32_t> local_slot_;
};

}  // namespace

std::vector<Piece> cut_pieces(const Program& program) {
  return Cutter(program).cut();
}

bool same_structure(const Piece& a, const Piece& b) {
  return same_bytes(a.nodes, b.nodes) &&
         same_bytes(a.slot_infos, b.slot_infos) &&
         same_bytes(a.stores, b.stores);
}

}  // namespace fuse
