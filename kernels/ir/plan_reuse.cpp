#include "fusebook/ir/plan_reuse.h"

#include <algorithm>
#include <utility>

#include "fusebook/ir/lower_body.h"
#include "fusebook/support/same_bytes.h"

namespace fuse {
namespace {

using Kind = ScalarUse::Kind;

bool is_scalar(const Node& node) {
  return node.op == OpCode::constant || node.op == OpCode::argument;
}

// A number is read in the same way whether it was recorded as a constant or as
// an argument.
bool same_node(const Node& a, const Node& b) {
  return (a.op == b.op || (is_scalar(a) && is_scalar(b))) && a.rate == b.rate &&
         a.dtype == b.dtype && a.arity == b.arity &&
         std::equal(std::begin(a.in), std::end(a.in), std::begin(b.in));
}

bool has_arguments(const BodySource& body) {
  return std::any_of(
      body.scalars.begin(), body.scalars.end(),
      [](const ScalarUse& use) { return use.kind == Kind::argument; });
}

// Whatever the treatment of the scalars.
bool made_from(const BodySource& body, const Piece& piece) {
  return std::equal(body.nodes.begin(), body.nodes.end(), piece.nodes.begin(),
                    piece.nodes.end(), same_node) &&
         same_bytes(body.slots, piece.slot_infos) &&
         same_bytes(body.stores, piece.stores);
}

// Finds a body for each piece.
class Fitting {
 public:
  Fitting(const Plan& kernel, const Program& program)
      : kernel_(kernel), program_(program), used_(kernel.bodies.size(), false) {
    plan_.args.assign(kernel.args.size(), -1);
  }

  bool place(const Piece& piece) {
    for (std::size_t b = 0; b < kernel_.sources.size(); ++b) {
      const BodySource& body = kernel_.sources[b];
      if (used_[b] && has_arguments(body)) continue;
      if (!made_from(body, piece) || !takes(body, piece)) continue;
      used_[b] = true;
      add_instance(b, piece);
      return true;
    }
    return false;
  }

  Plan finish() {
    plan_.bodies = kernel_.bodies;
    plan_.sources = kernel_.sources;
    plan_.column_count = kernel_.column_count;
    return std::move(plan_);
  }

 private:
  const ScalarLeaf& leaf(std::int32_t scalar) const {
    return program_.scalars()[scalar];
  }

  // True if the piece has the same plain numbers as the body bakes; a launch
  // argument is one number for all tensors.
  bool takes(const BodySource& body, const Piece& piece) const {
    return std::all_of(
        piece.nodes.begin(), piece.nodes.end(), [&](const Node& node) {
          if (!is_scalar(node)) return true;
          const auto local = std::size_t(node.in[0]);
          const ScalarUse& use = body.scalars[local];
          const ScalarLeaf& own = leaf(piece.scalars[local]);
          if (use.kind == Kind::column) return true;
          if (use.kind == Kind::argument) return own.is_single();
          return node.op == OpCode::constant && own.is(use.value);
        });
  }

  void add_instance(std::size_t b, const Piece& piece) {
    Instance instance = {int(b), piece.slots, {}, false, piece.phase};
    const auto& uses = kernel_.sources[b].scalars;
    instance.columns.resize(std::size_t(kernel_.bodies[b].columns), -1);
    for (std::size_t k = 0; k < uses.size(); ++k) {
      const std::int32_t scalar = piece.scalars[k];
      const auto index = std::size_t(uses[k].index);
      switch (uses[k].kind) {
        case Kind::baked:
          plan_.guards.push_back({scalar, uses[k].value});
          break;
        case Kind::argument:
          plan_.args[index] = scalar;
          break;
        case Kind::column:
          instance.columns[index] = scalar;
          instance.by_tensor |= leaf(scalar).column != nullptr;
          break;
      }
    }
    plan_.instances.push_back(std::move(instance));
  }

  const Plan& kernel_;
  const Program& program_;
  std::vector<bool> used_;
  Plan plan_;
};

bool same_source(const BodySource& a, const BodySource& b) {
  return std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(),
                    b.nodes.end(), same_node) &&
         same_bytes(a.slots, b.slots) && same_bytes(a.stores, b.stores);
}

// Numbers that may no longer be baked, and launch arguments, become columns: any
// number of lists may come to use the body.
void free_scalars(BodySource& source, MayBake may_bake) {
  int columns = 0;
  for (ScalarUse& use : source.scalars) {
    if (use.kind == Kind::baked && may_bake(use.origin)) continue;
    use.kind = Kind::column;
    use.index = columns++;
  }
}

}  // namespace

bool has_body_for(const Plan& kernel, const Piece& piece) {
  return std::any_of(
      kernel.sources.begin(), kernel.sources.end(),
      [&](const BodySource& body) { return made_from(body, piece); });
}

std::optional<Plan> fit(const Plan& kernel, const Program& program,
                        std::span<const Piece> pieces) {
  Fitting fitting(kernel, program);
  for (const Piece& piece : pieces) {
    if (!fitting.place(piece)) return std::nullopt;
  }
  return fitting.finish();
}

std::vector<MovedNumber> moved_numbers(const Plan& kernel,
                                       const Program& program,
                                       std::span<const Piece> pieces) {
  std::vector<MovedNumber> moved;
  for (const BodySource& body : kernel.sources) {
    for (const Piece& piece : pieces) {
      if (!made_from(body, piece)) continue;
      for (std::size_t k = 0; k < body.scalars.size(); ++k) {
        const ScalarUse& use = body.scalars[k];
        const std::int32_t scalar = piece.scalars[k];
        const ScalarLeaf& now = program.scalars()[scalar];
        if (use.kind != Kind::baked || now.is(use.value)) continue;
        if (!same_parameter(use.origin, now.origin)) continue;
        moved.push_back({&use, scalar});
      }
    }
  }
  return moved;
}

void add_bodies(Plan& plan, const Plan& known, MayBake may_bake) {
  for (const BodySource& body : known.sources) {
    const bool there = std::any_of(
        plan.sources.begin(), plan.sources.end(),
        [&](const BodySource& own) { return same_source(own, body); });
    if (there) continue;
    BodySource source = body;
    free_scalars(source, may_bake);
    plan.bodies.push_back(lower_body(source));
    plan.sources.push_back(std::move(source));
    plan.column_count = std::max(plan.column_count, plan.bodies.back().columns);
  }
}

}  // namespace fuse
