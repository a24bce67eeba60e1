#include "fusebook/cpu/tile_program.h"

#include <algorithm>

namespace fuse {
namespace {

class Lowering {
 public:
  Lowering(const Body& body, bool direct)
      : body_(body),
        direct_(direct),
        reduces_(body.reduces()),
        place_(body.nodes.size()),
        last_use_(body.nodes.size(), -1) {}

  TileProgram lower() {
    find_last_uses();
    for (std::int32_t id = 0; id < count(); ++id) {
      if (node(id).rate != Rate::element) continue;
      if (node(id).op == OpCode::load) {
        place_load(id);
      } else if (node(id).op == OpCode::draw) {
        place_[std::size_t(id)] = place_[std::size_t(node(id).in[0])];
      } else {
        add_step(id);
      }
    }
    for (const Store& store : body_.stores) {
      reduces_ ? add_reduction(store) : finish_store(store);
    }
    return std::move(program_);
  }

 private:
  std::int32_t count() const { return std::int32_t(body_.nodes.size()); }
  const BodyNode& node(std::int32_t id) const {
    return body_.nodes[std::size_t(id)];
  }
  bool is_element(const Store& store) const {
    return body_.slots[std::size_t(store.slot)].rate == Rate::element;
  }

  void find_last_uses() {
    for (std::int32_t id = 0; id < count(); ++id) {
      for (int k = 0; k < node(id).arity; ++k) {
        last_use_[std::size_t(node(id).in[k])] = id;
      }
    }
    for (const Store& store : body_.stores) {
      const auto value = std::size_t(store.value);
      last_use_[reduces_ ? std::size_t(node(store.value).in[0]) : value] =
          count();
    }
  }

  // A load is read in place, unless it must outlive a store to its memory or is
  // stored in another format. What is reduced is widened before.
  void place_load(std::int32_t id) {
    const std::int32_t slot = node(id).index;
    const Place memory = {Place::Kind::memory, slot};
    place_[std::size_t(id)] = memory;
    const DType dtype = node(id).dtype;
    const bool stays = reduces_ || last_use_[std::size_t(id)] < count();
    if (stays && !is_reduced(dtype)) return;
    const Place buffer = {Place::Kind::buffer, take_buffer()};
    add(cast_loop(dtype, compute_type(dtype)), memory, buffer);
    place_[std::size_t(id)] = buffer;
  }

  static Loop cast_loop(DType from, DType to) {
    return loops().casts[std::size_t(from)][std::size_t(to)][0];
  }
  static Loop copy_loop(DType dtype) { return cast_loop(dtype, dtype); }

  void add(Loop loop, Place in, Place out) {
    program_.steps.push_back({loop, 1, {in}, out});
  }

  void add_step(std::int32_t id) {
    const BodyNode& n = node(id);
    TileStep step;
    step.arity = n.arity;
    unsigned mask = 0;
    for (int k = 0; k < n.arity; ++k) {
      step.in[k] = operand(n.in[k], n);
      if (step.in[k].kind == Place::Kind::scalar) mask |= 1U << k;
    }
    step.loop = choose(n, mask);
    // A loop may overwrite its operand, but not one whose elements have another
    // size: it would overwrite unread elements.
    const bool may_reuse = n.op != OpCode::cast;
    if (!may_reuse) step.out = destination(id);
    for (int k = 0; k < n.arity; ++k) release(n.in[k], id);
    if (may_reuse) step.out = destination(id);
    place_[std::size_t(id)] = step.out;
    program_.steps.push_back(step);
    if (n.op == OpCode::cast || !is_reduced(n.dtype)) return;
    const auto computed = std::size_t(compute_type(n.dtype));
    add(loops().rounds[computed][std::size_t(n.dtype)][0], step.out, step.out);
  }

  // A cast runs in its source type, everything else in its own type.
  DType operand_dtype(std::int32_t value, const BodyNode& user) const {
    if (user.op != OpCode::cast) return compute_type(user.dtype);
    const BodyNode& from = node(value);
    return from.rate == Rate::element ? compute_type(from.dtype)
                                      : DType::float64;
  }

  Loop choose(const BodyNode& n, unsigned mask) const {
    const auto to = std::size_t(n.dtype);
    if (n.op != OpCode::cast) {
      const auto computed = std::size_t(compute_type(n.dtype));
      return loops().ops[computed][std::size_t(n.op)][mask];
    }
    const auto from = std::size_t(operand_dtype(n.in[0], n));
    return is_reduced(n.dtype) ? loops().rounds[from][to][mask]
                               : loops().casts[from][to][mask];
  }

  Place operand(std::int32_t value, const BodyNode& user) {
    if (node(value).rate == Rate::element) return place_[std::size_t(value)];
    const TileScalar wanted = {value, operand_dtype(value, user)};
    auto& scalars = program_.scalars;
    const auto same =
        std::find_if(scalars.begin(), scalars.end(), [&](const TileScalar& s) {
          return s.value == wanted.value && s.dtype == wanted.dtype;
        });
    const auto index = std::int32_t(same - scalars.begin());
    if (same == scalars.end()) scalars.push_back(wanted);
    return {Place::Kind::scalar, index};
  }

  void release(std::int32_t value, std::int32_t user) {
    const Place place = place_[std::size_t(value)];
    if (node(value).rate != Rate::element) return;
    if (place.kind != Place::Kind::buffer) return;
    if (last_use_[std::size_t(value)] != user) return;
    last_use_[std::size_t(value)] = -1;  // the same operand may occur twice
    free_.push_back(place.index);
  }

  std::int32_t take_buffer() {
    if (free_.empty()) return program_.buffers++;
    const std::int32_t buffer = free_.back();
    free_.pop_back();
    return buffer;
  }

  Place destination(std::int32_t id) {
    for (const Store& store : body_.stores) {
      if (store.value != id || !is_element(store)) continue;
      if (direct_ && !is_reduced(node(id).dtype) &&
          !read_after(store.slot, id)) {
        return {Place::Kind::memory, store.slot};
      }
    }
    return {Place::Kind::buffer, take_buffer()};
  }

  bool read_after(std::int32_t slot, std::int32_t id) const {
    for (std::int32_t later = id + 1; later < count(); ++later) {
      const BodyNode& read = node(later);
      if (read.op == OpCode::load && read.index == slot) return true;
      for (int k = 0; k < node(later).arity; ++k) {
        const BodyNode& in = node(node(later).in[k]);
        if (in.op == OpCode::load && in.index == slot) return true;
      }
    }
    return false;
  }

  void add_reduction(const Store& store) {
    const BodyNode& reduction = node(store.value);
    const std::int32_t value = reduction.in[0];
    program_.reductions.push_back({reduction.op, place_[std::size_t(value)],
                                   compute_type(node(value).dtype)});
  }

  void finish_store(const Store& store) {
    if (!is_element(store)) return;
    const Place place = place_[std::size_t(store.value)];
    const Place memory = {Place::Kind::memory, store.slot};
    const DType dtype = body_.slots[std::size_t(store.slot)].dtype;
    if (is_reduced(dtype)) {
      add(cast_loop(compute_type(dtype), dtype), place, memory);
    } else if (place.kind == Place::Kind::buffer) {
      program_.copies.push_back({place.index, store.slot});
    } else if (place.index != store.slot) {
      add(copy_loop(dtype), place, memory);
    }
  }

  const Body& body_;
  bool direct_;
  bool reduces_;
  TileProgram program_;
  std::vector<Place> place_;
  std::vector<std::int32_t> last_use_;
  std::vector<std::int32_t> free_;
};

}  // namespace

TileProgram make_tile_program(const Body& body, bool direct) {
  return Lowering(body, direct).lower();
}

}  // namespace fuse
