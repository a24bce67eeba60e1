#include "fusebook/ir/simplify.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "fusebook/ops/loops.h"

namespace fuse {
namespace {

bool all_constant(const Body& body, const BodyNode& node) {
  if (node.arity == 0 || node.rate == Rate::element) return false;
  return std::all_of(node.in, node.in + node.arity, [&](std::int32_t id) {
    return body.nodes[id].op == OpCode::constant;
  });
}

double evaluate(const Body& body, const BodyNode& node) {
  std::array<double, 4> in{};
  for (std::size_t k = 0; k < node.arity; ++k) {
    in[k] = body.nodes[node.in[k]].value;
  }
  return apply_to_numbers(node.op, std::span(in).first(node.arity));
}

void fold(Body& body) {
  for (BodyNode& node : body.nodes) {
    if (node.op == OpCode::cast || !all_constant(body, node)) continue;
    if (node.rate != Rate::uniform) continue;
    node.value = evaluate(body, node);
    node.op = OpCode::constant;
    node.arity = 0;
  }
}

// An unchanged copy of a computed value is that value. (A copy of a list stays
// a copy, so that the operation remains visible.)
bool is_plain_copy(const Body& body, const BodyNode& node) {
  if (!is_move(node.op)) return false;
  const BodyNode& from = body.nodes[node.in[0]];
  return from.arity > 0 && from.rate == node.rate && from.dtype == node.dtype;
}

bool same_node(const BodyNode& a, const BodyNode& b) {
  return a.op == b.op && a.rate == b.rate && a.dtype == b.dtype &&
         a.arity == b.arity && a.index == b.index &&
         std::memcmp(&a.value, &b.value, sizeof(double)) == 0 &&
         std::equal(a.in, a.in + a.arity, b.in);
}

void share(Body& body) {
  std::vector<std::int32_t> first(body.nodes.size());
  for (std::size_t i = 0; i < body.nodes.size(); ++i) {
    BodyNode& node = body.nodes[i];
    for (int k = 0; k < node.arity; ++k) {
      node.in[k] = first[node.in[k]];
    }
    if (is_plain_copy(body, node)) {
      first[i] = node.in[0];
      continue;
    }
    std::size_t j = 0;
    while (j < i && !same_node(body.nodes[j], node)) ++j;
    first[i] = first[j] = std::int32_t(j);
  }
  for (Store& store : body.stores) {
    store.value = first[store.value];
  }
}

}  // namespace

void drop_dead(Body& body) {
  std::vector<bool> live(body.nodes.size());
  for (const Store& store : body.stores) live[store.value] = true;
  for (std::size_t i = body.nodes.size(); i-- > 0;) {
    if (!live[i]) continue;
    const BodyNode& node = body.nodes[i];
    for (int k = 0; k < node.arity; ++k) live[node.in[k]] = true;
  }
  std::vector<std::int32_t> moved(body.nodes.size(), -1);
  std::vector<BodyNode> kept;
  for (std::size_t i = 0; i < body.nodes.size(); ++i) {
    if (!live[i]) continue;
    moved[i] = std::int32_t(kept.size());
    kept.push_back(body.nodes[i]);
    BodyNode& node = kept.back();
    for (int k = 0; k < node.arity; ++k) {
      node.in[k] = moved[node.in[k]];
    }
  }
  body.nodes = std::move(kept);
  for (Store& store : body.stores) {
    store.value = moved[store.value];
  }
}

void simplify(Body& body) {
  fold(body);
  share(body);
  drop_dead(body);
}

}  // namespace fuse
