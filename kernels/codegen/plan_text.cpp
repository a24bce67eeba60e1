#include "fusebook/codegen/plan_text.h"

#include <algorithm>
#include <array>
#include <sstream>

#include "fusebook/codegen/names.h"
#include "fusebook/support/source_place.h"

namespace fuse {
namespace {

std::string operand(const Body& body, const BodyNames& names, std::int32_t id) {
  const BodyNode& node = body.nodes[std::size_t(id)];
  return node.op == OpCode::constant ? constant_text(node.value, node.dtype)
                                     : names.values[std::size_t(id)];
}

std::string slot_text(const Body& body, const BodyNames& names,
                      std::int32_t slot) {
  const bool strided = body.slots[std::size_t(slot)].strided;
  return names.slots[std::size_t(slot)] + (strided ? " strided" : "");
}

std::string leaf(const Body& body, const BodyNode& node,
                 const BodyNames& names) {
  if (node.op == OpCode::load) {
    return "load " + slot_text(body, names, node.index);
  }
  return (node.rate == Rate::entry ? "column " : "argument ") +
         std::to_string(node.index) + ", " + to_string(node.origin);
}

std::string operation(const Body& body, const BodyNames& names,
                      const BodyNode& node) {
  std::string text(name_of(node.op));
  for (int k = 0; k < node.arity; ++k) {
    text += (k == 0 ? "(" : ", ") + operand(body, names, node.in[k]);
  }
  return text + ")";
}

void write_node(const Body& body, const BodyNames& names, std::size_t i,
                std::ostream& out) {
  static constexpr std::array rates = {"uniform", "entry", "element"};
  const BodyNode& node = body.nodes[i];
  if (node.op == OpCode::constant) return;
  out << "  " << names.values[i] << " = "
      << (node.arity == 0 ? leaf(body, node, names)
                          : operation(body, names, node))
      << "  : " << rates[std::size_t(node.rate)] << " " << name_of(node.dtype);
  if (node.arity > 0 && node.place.line() > 0) {
    out << ", " << at(node.place);
  }
  out << "\n";
}

void write_body(const Plan& plan, std::size_t b, std::ostream& out) {
  const Body& body = plan.bodies[b];
  const BodyNames names = name_body(body);
  const auto groups = std::count_if(
      plan.instances.begin(), plan.instances.end(),
      [&](const Instance& instance) { return instance.body == int(b); });
  out << "body " << b << ", for " << groups
      << (groups == 1 ? " group of lists\n" : " groups of lists\n");
  for (std::size_t i = 0; i < body.nodes.size(); ++i) {
    write_node(body, names, i, out);
  }
  for (const Store& store : body.stores) {
    out << "  store " << operand(body, names, store.value) << " -> "
        << slot_text(body, names, store.slot) << "\n";
  }
}

}  // namespace

std::string dump(const Plan& plan) {
  std::ostringstream out;
  for (std::size_t b = 0; b < plan.bodies.size(); ++b) {
    write_body(plan, b, out);
  }
  return out.str();
}

}  // namespace fuse
