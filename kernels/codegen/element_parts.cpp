#include "fusebook/codegen/element_parts.h"

#include "fusebook/codegen/emit_body.h"

namespace fuse {
namespace {

bool is_computed(const BodyNode& node) {
  return node.rate == Rate::element && node.arity > 0;
}

}  // namespace

ElementParts::ElementParts(const Body& body) : waits_(body.nodes.size()) {
  if (is_long(body)) return;
  find_waiting(body);
  bool first = false;
  bool second = false;
  for (std::size_t id = 0; id < waits_.size(); ++id) {
    if (is_computed(body.nodes[id])) (waits_[id] ? second : first) = true;
  }
  two_ = first && second;
  if (two_) find_kept(body);
}

void ElementParts::find_waiting(const Body& body) {
  for (std::size_t id = 0; id < waits_.size(); ++id) {
    const BodyNode& node = body.nodes[id];
    if (!is_computed(node)) continue;
    bool waits = divides(node.op);
    for (int k = 0; k < node.arity; ++k) waits = waits || waits_[node.in[k]];
    waits_[id] = waits;
  }
}

void ElementParts::find_kept(const Body& body) {
  for (std::size_t id = 0; id < waits_.size(); ++id) {
    if (!waits_[id]) continue;
    const BodyNode& node = body.nodes[id];
    for (int k = 0; k < node.arity; ++k) {
      const bool element = body.nodes[node.in[k]].rate == Rate::element;
      if (element && !waits_[node.in[k]]) kept_.insert(node.in[k]);
    }
  }
}

}  // namespace fuse
