#include "fusebook/codegen/graph_dot.h"

#include <sstream>

#include "fusebook/codegen/names.h"

namespace fuse {
namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

// Writes the statements of one graph whose nodes are called PREFIXn.
class Writer {
 public:
  Writer(std::ostream& out, std::string prefix)
      : out_(out), prefix_(std::move(prefix)) {}

  template <class AnyNode>
  void node(std::size_t id, const AnyNode& node, const std::string& label) {
    out_ << "  " << prefix_ << id << " [label=" << quoted(label)
         << ", shape=" << (node.arity == 0 ? "ellipse" : "box")
         << (node.rate == Rate::element ? "" : ", style=dashed") << "];\n";
    for (int k = 0; k < node.arity; ++k) {
      out_ << "  " << prefix_ << node.in[k] << " -> " << prefix_ << id << ";\n";
    }
  }

  void store(std::size_t number, const Store& store, const std::string& slot) {
    out_ << "  " << prefix_ << "store" << number
         << " [label=" << quoted("store " + slot)
         << ", shape=box, style=bold];\n  " << prefix_ << store.value << " -> "
         << prefix_ << "store" << number << ";\n";
  }

 private:
  std::ostream& out_;
  std::string prefix_;
};

std::string mark(bool strided) { return strided ? " strided" : ""; }

std::string slot_name(const Program& program, std::int32_t slot) {
  const char* const label = program.lists()[std::size_t(slot)].label;
  const std::string name =
      label != nullptr ? label : "slot" + std::to_string(slot);
  return name + mark(program.slots()[std::size_t(slot)].strided);
}

template <class AnyNode>
std::string operation_name(const AnyNode& node) {
  const std::string name(name_of(node.op));
  return node.op == OpCode::cast ? name + " to " + name_of(node.dtype) : name;
}

std::string label_of(const Program& program, const Node& node) {
  if (node.op == OpCode::load) return slot_name(program, node.in[0]);
  if (node.arity > 0) return operation_name(node);
  const ScalarLeaf& leaf = program.scalars()[std::size_t(node.in[0])];
  return constant_text(leaf.value, DType::float64) +
         (leaf.is_single() ? "" : ", ...");
}

std::string label_of(const Body& body, const BodyNode& node,
                     const std::string& name) {
  if (node.op == OpCode::load) {
    return name + mark(body.slots[std::size_t(node.index)].strided);
  }
  if (node.op == OpCode::constant) {
    return constant_text(node.value, node.dtype);
  }
  return node.arity == 0 ? name : name + " = " + operation_name(node);
}

void write_body(const Body& body, std::size_t number, std::ostream& out) {
  const BodyNames names = name_body(body);
  Writer writer(out, "b" + std::to_string(number) + "_");
  out << "subgraph cluster_" << number << " {\n  label=\"body " << number
      << "\";\n";
  for (std::size_t i = 0; i < body.nodes.size(); ++i) {
    writer.node(i, body.nodes[i],
                label_of(body, body.nodes[i], names.values[i]));
  }
  for (std::size_t s = 0; s < body.stores.size(); ++s) {
    const Store& store = body.stores[s];
    const auto slot = std::size_t(store.slot);
    writer.store(s, store, names.slots[slot] + mark(body.slots[slot].strided));
  }
  out << "}\n";
}

}  // namespace

std::string dot(const Program& program, const std::string& name) {
  std::ostringstream out;
  out << "digraph " << quoted(name) << " {\n";
  Writer writer(out, "v");
  for (std::size_t i = 0; i < program.nodes().size(); ++i) {
    // What a leaf has in place of operands is no value.
    const Node& node = program.nodes()[i];
    writer.node(i, node, label_of(program, node));
  }
  for (std::size_t s = 0; s < program.stores().size(); ++s) {
    const Store& store = program.stores()[s];
    writer.store(s, store, slot_name(program, store.slot));
  }
  out << "}\n";
  return out.str();
}

std::string dot(const Plan& plan, const std::string& name) {
  std::ostringstream out;
  out << "digraph " << quoted(name) << " {\n";
  for (std::size_t b = 0; b < plan.bodies.size(); ++b) {
    write_body(plan.bodies[b], b, out);
  }
  out << "}\n";
  return out.str();
}

}  // namespace fuse
