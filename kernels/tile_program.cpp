#include "tile_program.h"

#include <algorithm>

namespace fuse {
namespace {

class Lowering {
 public:
  Lowering(const Body& body, bool direct)
      : body_(body),
        direct_(direct),
        place_(body.nodes.size()),
        last_use_(body.nodes.size(), -1) {}

  TileProgram lower() {
    find_last_uses();
    for (std::int32_t id = 0; id < count(); ++id) {
      if (node(id).rate != Rate::element) continue;
      node(id).op == OpCode::load ? place_load(id) : add_step(id);
    }
    for (const Store& store : body_.stores) finish_store(store);
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
      last_use_[std::size_t(store.value)] = count();
    }
  }

  // A load is read in place, unless it must outlive a store to its memory.
  void place_load(std::int32_t id) {
    const std::int32_t slot = node(id).index;
    const Place memory = {Place::Kind::memory, slot};
    place_[std::size_t(id)] = memory;
    if (last_use_[std::size_t(id)] < count()) return;
    const DType dtype = node(id).dtype;
    const Place buffer = {Place::Kind::buffer, take_buffer()};
    add(copy_loop(dtype), 1, {memory}, buffer, dtype);
    place_[std::size_t(id)] = buffer;
  }

  static Loop copy_loop(DType dtype) {
    return loops().casts[std::size_t(dtype)][std::size_t(dtype)][0];
  }

  void add(Loop loop, int arity, std::initializer_list<Place> in, Place out,
           DType dtype) {
    TileStep step{loop, arity, {}, out, dtype};
    std::copy(in.begin(), in.end(), step.in);
    program_.steps.push_back(step);
  }

  void add_step(std::int32_t id) {
    const BodyNode& n = node(id);
    TileStep step;
    step.arity = n.arity;
    step.out_dtype = n.dtype;
    unsigned mask = 0;
    for (int k = 0; k < n.arity; ++k) {
      step.in[k] = operand(n.in[k], n);
      if (step.in[k].kind == Place::Kind::scalar) mask |= 1U << k;
    }
    step.loop = choose(n, mask);
    // A loop may write over its operand, but not one whose elements are of
    // another size: it would overtake itself.
    const bool may_reuse = n.op != OpCode::cast;
    if (!may_reuse) step.out = destination(id);
    for (int k = 0; k < n.arity; ++k) release(n.in[k], id);
    if (may_reuse) step.out = destination(id);
    place_[std::size_t(id)] = step.out;
    program_.steps.push_back(step);
  }

  // A cast runs in the type it comes from, everything else in its own.
  DType operand_dtype(std::int32_t value, const BodyNode& user) const {
    if (user.op != OpCode::cast) return user.dtype;
    const BodyNode& from = node(value);
    return from.rate == Rate::element ? from.dtype : DType::float64;
  }

  Loop choose(const BodyNode& n, unsigned mask) const {
    if (n.op != OpCode::cast) {
      return loops().ops[std::size_t(n.dtype)][std::size_t(n.op)][mask];
    }
    const auto from = std::size_t(operand_dtype(n.in[0], n));
    return loops().casts[from][std::size_t(n.dtype)][mask];
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
    last_use_[std::size_t(value)] = -1;  // the same operand may come twice
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
      if (direct_ && !read_after(store.slot, id)) {
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

  void finish_store(const Store& store) {
    if (!is_element(store)) return;
    const Place place = place_[std::size_t(store.value)];
    if (place.kind == Place::Kind::buffer) {
      program_.copies.push_back({place.index, store.slot});
    } else if (place.index != store.slot) {
      const DType dtype = body_.slots[std::size_t(store.slot)].dtype;
      add(copy_loop(dtype), 1, {place}, {Place::Kind::memory, store.slot},
          dtype);
    }
  }

  const Body& body_;
  bool direct_;
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
