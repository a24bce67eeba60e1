#include "fusebook/ir/plan.h"

#include <algorithm>
#include <set>

#include "fusebook/ir/lower_body.h"
#include "fusebook/ops/reductions.h"
#include "fusebook/support/same_bytes.h"

namespace fuse {
namespace {

// Turns pieces with the same structure into a body and its instances.
class BodyMaker {
 public:
  BodyMaker(const Program& program, Plan& plan, MayBake may_bake)
      : program_(program), plan_(plan), may_bake_(may_bake) {}

  void make(const std::vector<const Piece*>& pieces) {
    const Piece& first = *pieces.front();
    BodySource source = {first.nodes,     first.places, first.slot_infos,
                         names_of(first), first.stores, {}};
    source.scalars.resize(first.scalars.size());
    instances_.clear();
    columns_ = 0;
    for (const Piece* piece : pieces) {
      instances_.push_back(
          {int(plan_.bodies.size()), piece->slots, {}, false, piece->phase});
    }
    for (const Node& node : first.nodes) {
      if (node.op != OpCode::constant && node.op != OpCode::argument) continue;
      const auto local = std::size_t(node.in[0]);
      source.scalars[local] = use_of(node.op, local, pieces);
    }
    plan_.column_count = std::max(plan_.column_count, columns_);
    plan_.bodies.push_back(lower_body(source));
    plan_.sources.push_back(std::move(source));
    plan_.instances.insert(plan_.instances.end(), instances_.begin(),
                           instances_.end());
  }

 private:
  using Kind = ScalarUse::Kind;

  const ScalarLeaf& leaf(std::int32_t scalar) const {
    return program_.scalars()[scalar];
  }

  std::vector<std::string> names_of(const Piece& piece) const {
    std::vector<std::string> names;
    for (const std::int32_t slot : piece.slots) names.push_back(name_of(slot));
    return names;
  }

  std::string name_of(std::int32_t slot) const {
    const auto lists = program_.lists();
    if (std::size_t(slot) < lists.size()) {
      const char* label = lists[slot].label;
      return label != nullptr ? label : "list";
    }
    const std::size_t result = std::size_t(slot) - lists.size();
    const auto reductions = program_.reductions();
    if (result >= reductions.size()) return "kept";
    return std::string(fuse::name_of(program_.node(reductions[result]).op));
  }

  ScalarUse use_of(OpCode op, std::size_t local,
                   const std::vector<const Piece*>& pieces) {
    const ScalarLeaf& first = leaf(pieces.front()->scalars[local]);
    if (op == OpCode::constant && bakes(local, pieces)) {
      for (const Piece* piece : pieces) {
        plan_.guards.push_back({piece->scalars[local], first.value});
      }
      return {Kind::baked, -1, first.value, first.origin};
    }
    if (pieces.size() == 1 && first.column == nullptr) {
      plan_.args.push_back(pieces.front()->scalars[local]);
      return {Kind::argument, std::int32_t(plan_.args.size()) - 1, 0,
              first.origin};
    }
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const std::int32_t scalar = pieces[i]->scalars[local];
      instances_[i].columns.push_back(scalar);
      instances_[i].by_tensor |= leaf(scalar).column != nullptr;
    }
    return {Kind::column, columns_++, 0, first.origin};
  }

  bool bakes(std::size_t local, const std::vector<const Piece*>& pieces) const {
    const ScalarLeaf& first = leaf(pieces.front()->scalars[local]);
    return std::all_of(pieces.begin(), pieces.end(), [&](const Piece* piece) {
      const ScalarLeaf& other = leaf(piece->scalars[local]);
      return may_bake_(other.origin) && other.is(first.value);
    });
  }

  const Program& program_;
  Plan& plan_;
  MayBake may_bake_;
  std::vector<Instance> instances_;
  int columns_ = 0;
};

template <class Weight>
std::int64_t total(const Body& body, Weight weight) {
  std::int64_t sum = 0;
  for (const BodySlot& slot : body.slots) {
    const int passes = int(slot.loaded) + int(slot.stored);
    sum += passes * std::int64_t(weight(slot));
  }
  return sum;
}

}  // namespace

std::int64_t Body::bytes_per_element() const {
  return total(*this, [](const BodySlot& slot) {
    const bool in_memory = slot.rate == Rate::element && !slot.draws();
    return in_memory ? size_of(slot.stored_dtype()) : 0;
  });
}

std::int64_t Body::bytes_of_scales(std::int64_t numel) const {
  return total(*this, [&](const BodySlot& slot) {
    if (!slot.blocks) return std::size_t(0);
    return sizeof(float) *
           std::size_t(blocks_in(numel, block_size_of(*slot.blocks)));
  });
}

std::int64_t Body::bytes_per_entry() const {
  return total(*this, [](const BodySlot& slot) {
    return slot.rate == Rate::entry ? size_of(slot.dtype) : 0;
  });
}

bool Body::has_blocks() const {
  return std::any_of(slots.begin(), slots.end(), [](const BodySlot& slot) {
    return slot.blocks.has_value();
  });
}

std::int64_t Body::largest_block() const {
  std::int64_t largest = 0;
  for (const BodySlot& slot : slots) {
    if (slot.blocks) largest = std::max(largest, block_size_of(*slot.blocks));
  }
  return largest;
}

bool Body::has_halves() const {
  const auto whole = [](const auto& item) {
    return item.dtype == DType::int16;
  };
  return std::any_of(slots.begin(), slots.end(), whole) ||
         std::any_of(nodes.begin(), nodes.end(), [&](const BodyNode& node) {
           return whole(node) || works_on_bits(node.op);
         });
}

bool Body::draws() const {
  return std::any_of(slots.begin(), slots.end(),
                     [](const BodySlot& slot) { return slot.draws(); });
}

bool Body::strided() const {
  return std::any_of(slots.begin(), slots.end(),
                     [](const BodySlot& slot) { return slot.strided; });
}

bool Body::reduces() const {
  return std::any_of(nodes.begin(), nodes.end(), [](const BodyNode& node) {
    return is_reduction(node.op);
  });
}

std::vector<std::size_t> Plan::bodies_of(int phase) const {
  std::set<std::size_t> used;
  for (const Instance& instance : instances) {
    if (instance.phase == phase) used.insert(std::size_t(instance.body));
  }
  return {used.begin(), used.end()};
}

bool Plan::reduces() const {
  return std::any_of(bodies.begin(), bodies.end(),
                     [](const Body& body) { return body.reduces(); });
}

bool Plan::has_blocks() const {
  return std::any_of(bodies.begin(), bodies.end(),
                     [](const Body& body) { return body.has_blocks(); });
}

bool Plan::has_halves() const {
  return std::any_of(bodies.begin(), bodies.end(),
                     [](const Body& body) { return body.has_halves(); });
}

bool Plan::draws() const {
  return std::any_of(bodies.begin(), bodies.end(),
                     [](const Body& body) { return body.draws(); });
}

bool Plan::matches(const Program& program) const {
  const auto scalars = program.scalars();
  const auto is_single = [&](std::int32_t scalar) {
    return scalar < 0 || scalars[scalar].is_single();
  };
  return std::all_of(guards.begin(), guards.end(),
                     [&](const Guard& guard) {
                       return scalars[guard.scalar].is(guard.value);
                     }) &&
         std::all_of(args.begin(), args.end(), is_single) &&
         std::all_of(instances.begin(), instances.end(),
                     [&](const Instance& instance) {
                       return instance.by_tensor ||
                              std::all_of(instance.columns.begin(),
                                          instance.columns.end(), is_single);
                     });
}

Plan make_plan(const Program& program, MayBake may_bake) {
  return make_plan(program, cut_pieces(program), may_bake);
}

Plan make_plan(const Program& program, std::span<const Piece> pieces,
               MayBake may_bake) {
  std::vector<std::vector<const Piece*>> classes;
  for (const Piece& piece : pieces) {
    auto same = std::find_if(
        classes.begin(), classes.end(),
        [&](const auto& c) { return same_structure(*c.front(), piece); });
    if (same == classes.end()) same = classes.insert(classes.end(), {{}});
    same->push_back(&piece);
  }
  Plan plan;
  BodyMaker maker(program, plan, may_bake);
  for (const auto& pieces_of_class : classes) maker.make(pieces_of_class);
  std::stable_sort(
      plan.instances.begin(), plan.instances.end(),
      [](const Instance& a, const Instance& b) { return a.phase < b.phase; });
  return plan;
}

}  // namespace fuse
