#include "fusebook/ir/pieces.h"

#include <algorithm>
#include <map>
#include <span>

#include "fusebook/ir/phases.h"
#include "fusebook/ops/reductions.h"
#include "fusebook/support/same_bytes.h"

namespace fuse {
namespace {

// So many reductions at most are made in one pass over the elements; each has
// its lanes on the stack.
constexpr std::size_t most_reductions = 8;

class Cutter {
 public:
  explicit Cutter(const Program& program)
      : program_(program),
        phases_(program),
        local_value_(program.nodes().size(), -1),
        local_slot_(program.slots().size() + program.reductions().size() +
                        phases_.kept().size(),
                    -1) {}

  std::vector<Piece> cut() {
    for (int phase = 0; phase < phases_.last(); ++phase) {
      std::vector<Store> results;
      for (const ValueId id : phases_.reductions()) {
        if (phases_.of_reduction(id) == phase) {
          results.push_back({result_slot(id), id});
        }
      }
      for (const auto& list : by_domain(results)) cut_reductions(list, phase);
      if (phase == 0) cut_kept();
    }
    for (const auto& list : by_domain(program_.stores())) {
      cut_one(list, phases_.last());
    }
    return std::move(pieces_);
  }

 private:
  // A total has no domain of its own.
  int domain_of(ValueId value) const {
    const Node& node = program_.node(value);
    return program_.domain(is_total(node.op) ? node.in[0] : value);
  }

  // In the order of the first one of each domain.
  std::vector<std::vector<Store>> by_domain(std::span<const Store> all) const {
    std::map<int, std::size_t> place_of_domain;
    std::vector<std::vector<Store>> stores;
    for (const Store& store : all) {
      const auto [at, added] =
          place_of_domain.try_emplace(domain_of(store.value), stores.size());
      if (added) stores.emplace_back();
      stores[at->second].push_back(store);
    }
    return stores;
  }

  void cut_reductions(std::span<const Store> stores, int phase) {
    for (std::size_t k = 0; k < stores.size(); k += most_reductions) {
      const std::size_t count = std::min(most_reductions, stores.size() - k);
      cut_one(stores.subspan(k, count), phase);
    }
  }

  // The largest of one element is that element, in all its bits.
  void cut_kept() {
    for (const std::int32_t number : phases_.kept()) {
      Piece& piece = pieces_.emplace_back();
      SlotInfo one = program_.slots()[number];
      one.rate = Rate::element;
      piece.nodes = {{OpCode::load, Rate::element, one.dtype, 0, {0}},
                     {OpCode::amax, Rate::entry, DType::float64, 1, {0}}};
      piece.places.resize(2);
      piece.slot_infos = {one, {DType::float64, Rate::uniform}};
      piece.stores = {{1, 1}};
      piece.slots = {number, kept_slot(number)};
    }
  }

  void cut_one(std::span<const Store> stores, int phase) {
    Piece& piece = pieces_.emplace_back();
    piece.phase = phase;
    std::vector<ValueId> touched;
    for (const Store& store : stores) collect(store.value, phase, touched);
    std::sort(touched.begin(), touched.end());
    for (const ValueId id : touched) take(id, piece);
    if (phase < phases_.last()) take_shape(stores.front().value, piece);
    for (const Store& store : stores) {
      const std::int32_t slot = take_slot(store.slot, piece);
      piece.stores.push_back({slot, local_value_[store.value]});
    }
    for (const ValueId id : touched) local_value_[id] = -1;
    for (const std::int32_t slot : piece.slots) {
      local_slot_[slot] = -1;
    }
  }

  // True for a reduction that an earlier phase has made.
  bool is_known(ValueId id, int phase) const {
    return is_reduction(program_.node(id).op) &&
           phases_.of_reduction(id) < phase;
  }

  // True for a number that the last phase has from the first one.
  bool is_kept(const Node& node, int phase) const {
    return phase == phases_.last() && node.op == OpCode::load &&
           phases_.place_in_kept(node.in[0]) >= 0;
  }

  // Collects everything a value depends on in a phase; -2 marks visited nodes.
  void collect(ValueId root, int phase, std::vector<ValueId>& touched) {
    std::vector<ValueId> open = {root};
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      if (local_value_[id] != -1) continue;
      local_value_[id] = -2;
      touched.push_back(id);
      if (is_known(id, phase)) continue;
      const Node& node = program_.node(id);
      open.insert(open.end(), node.in, node.in + node.arity);
    }
  }

  // Elements that depend on no list have the sizes of one all the same.
  void take_shape(ValueId reduction, Piece& piece) {
    const auto has_elements = [](const SlotInfo& info) {
      return info.rate == Rate::element;
    };
    const auto& infos = piece.slot_infos;
    if (std::any_of(infos.begin(), infos.end(), has_elements)) return;
    take_slot(program_.element_slot(program_.node(reduction).in[0]), piece);
  }

  void take(ValueId id, Piece& piece) {
    Node node = program_.node(id);
    if (is_known(id, piece.phase)) {
      node = load_of(take_slot(result_slot(id), piece));
    } else if (is_kept(node, piece.phase)) {
      node = load_of(take_slot(kept_slot(node.in[0]), piece));
    } else if (is_reduction(node.op)) {
      node.op = per_tensor(node.op);
    } else if (node.op == OpCode::load) {
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

  // A number that an earlier phase has left.
  static Node load_of(std::int32_t slot) {
    return {OpCode::load, Rate::entry, DType::float64, 0, {slot, -1, -1, -1}};
  }

  std::int32_t take_slot(std::int32_t slot, Piece& piece) {
    std::int32_t& local = local_slot_[slot];
    if (local < 0) {
      local = std::int32_t(piece.slots.size());
      piece.slots.push_back(slot);
      piece.slot_infos.push_back(info_of(slot));
    }
    return local;
  }

  std::int32_t result_slot(ValueId reduction) const {
    const auto all = program_.reductions();
    const auto at = std::lower_bound(all.begin(), all.end(), reduction);
    return std::int32_t(program_.slots().size()) +
           std::int32_t(at - all.begin());
  }

  std::int32_t kept_slot(std::int32_t number) const {
    return std::int32_t(program_.slots().size() +
                        program_.reductions().size()) +
           phases_.place_in_kept(number);
  }

  SlotInfo info_of(std::int32_t slot) const {
    const auto slots = program_.slots();
    if (std::size_t(slot) < slots.size()) return slots[slot];
    const std::size_t result = std::size_t(slot) - slots.size();
    const auto all = program_.reductions();
    const bool for_all =
        result >= all.size() || is_total(program_.node(all[result]).op);
    return {DType::float64, for_all ? Rate::uniform : Rate::entry};
  }

  const Program& program_;
  const Phases phases_;
  std::vector<std::int32_t> local_value_;
  std::vector<std::int32_t> local_slot_;
  std::vector<Piece> pieces_;
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
