#include "fusebook/codegen/print_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "fusebook/codegen/names.h"
#include "fusebook/support/join.h"
#include "fusebook/support/source_place.h"

namespace fuse {

// ---- summary ----------------------------------------------------------------

namespace {

std::string operations_of(const Body& body, Rate rate) {
  std::string list;
  for (const BodyNode& node : body.nodes) {
    if (node.rate == rate && node.arity > 0) add_item(list, name_of(node.op));
  }
  return list.empty() ? "nothing" : list;
}

std::string slots_of(const Body& body, bool BodySlot::* used) {
  std::string list;
  for (const BodySlot& slot : body.slots) {
    if (!(slot.*used) || slot.rate != Rate::element) continue;
    const std::string blocks =
        slot.blocks ? fmt::format(" ({})", name_of(*slot.blocks)) : "";
    add_item(list, slot.name + (slot.strided ? " (strided)" : "") + blocks);
  }
  return list.empty() ? "nothing" : list;
}

}  // namespace

std::string summary(const Body& body) {
  return "once per launch:   " + operations_of(body, Rate::uniform) + "\n" +
         "once per tensor:   " + operations_of(body, Rate::entry) + "\n" +
         "once per element:  " + operations_of(body, Rate::element) + "\n" +
         "loads:             " + slots_of(body, &BodySlot::loaded) + "\n" +
         "stores:            " + slots_of(body, &BodySlot::stored) + "\n" +
         "bytes per element: " + std::to_string(body.bytes_per_element()) +
         "\n";
}

std::string summary(const Plan& plan) {
  std::string text;
  if (plan.phases() == 1) {
    for (const Body& body : plan.bodies) text += summary(body);
    return text;
  }
  for (int phase = 0; phase < plan.phases(); ++phase) {
    text += "phase " + std::to_string(phase + 1) + "\n";
    for (const std::size_t b : plan.bodies_of(phase)) {
      text += summary(plan.bodies[b]);
    }
  }
  return text;
}

// ---- listing ----------------------------------------------------------------

namespace {

const char* rate_name(Rate rate) {
  static constexpr std::array names = {"uniform", "entry", "element"};
  return names[std::size_t(rate)];
}

std::string operand(const Body& body, const BodyNames& names, std::int32_t id) {
  const BodyNode& node = body.nodes[id];
  return node.op == OpCode::constant ? constant_text(node.value, node.dtype)
                                     : names.values[id];
}

std::string slot_text(const Body& body, const BodyNames& names,
                      std::int32_t slot) {
  const bool strided = body.slots[slot].strided;
  const auto& blocks = body.slots[slot].blocks;
  return names.slots[slot] + (strided ? " strided" : "") +
         (blocks ? std::string(" ") + name_of(*blocks) : "");
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

void list_node(const Body& body, const BodyNames& names, std::size_t i,
               std::ostream& out) {
  const BodyNode& node = body.nodes[i];
  if (node.op == OpCode::constant) return;
  out << "  " << names.values[i] << " = "
      << (node.arity == 0 ? leaf(body, node, names)
                          : operation(body, names, node))
      << "  : " << rate_name(node.rate) << " " << name_of(node.dtype);
  if (node.arity > 0 && node.place.line() > 0) {
    out << ", " << at(node.place);
  }
  out << "\n";
}

void list_body(const Plan& plan, std::size_t b, std::ostream& out) {
  const Body& body = plan.bodies[b];
  const BodyNames names = name_body(body);
  const auto groups = std::count_if(
      plan.instances.begin(), plan.instances.end(),
      [&](const Instance& instance) { return instance.body == int(b); });
  out << "body " << b << ", for " << groups
      << (groups == 1 ? " group of lists\n" : " groups of lists\n");
  for (std::size_t i = 0; i < body.nodes.size(); ++i) {
    list_node(body, names, i, out);
  }
  for (const Store& store : body.stores) {
    out << "  store " << operand(body, names, store.value) << " -> "
        << slot_text(body, names, store.slot) << "\n";
  }
}

}  // namespace

std::string listing(const Program& program) {
  std::ostringstream text;
  for (std::size_t i = 0; i < program.nodes().size(); ++i) {
    const Node& n = program.nodes()[i];
    text << "%" << i << " = " << name_of(n.op);
    if (n.op == OpCode::load) {
      const char* label = program.lists()[n.in[0]].label;
      text << " slot" << n.in[0] << (label != nullptr ? " " : "")
           << (label != nullptr ? label : "");
      if (program.slots()[n.in[0]].strided) text << " strided";
    } else if (n.op == OpCode::constant || n.op == OpCode::argument) {
      const ScalarLeaf& leaf = program.scalars()[n.in[0]];
      text << " " << leaf.value << (leaf.is_single() ? "" : ", ...");
      if (leaf.origin.name != nullptr) text << " " << to_string(leaf.origin);
    }
    for (int k = 0; k < n.arity; ++k) text << " %" << n.in[k];
    text << "  : " << rate_name(n.rate) << " " << name_of(n.dtype) << "\n";
  }
  for (const Store& store : program.stores()) {
    text << "store %" << store.value << " -> slot" << store.slot
         << (program.slots()[store.slot].strided ? " strided\n" : "\n");
  }
  return text.str();
}

std::string listing(const Plan& plan) {
  std::ostringstream out;
  for (std::size_t b = 0; b < plan.bodies.size(); ++b) {
    list_body(plan, b, out);
  }
  return out.str();
}

// ---- graphviz ---------------------------------------------------------------

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
class GraphWriter {
 public:
  GraphWriter(std::ostream& out, std::string prefix)
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
  const char* const label = program.lists()[slot].label;
  const std::string name =
      label != nullptr ? label : "slot" + std::to_string(slot);
  return name + mark(program.slots()[slot].strided);
}

template <class AnyNode>
std::string operation_name(const AnyNode& node) {
  const std::string name(name_of(node.op));
  return node.op == OpCode::cast ? name + " to " + name_of(node.dtype) : name;
}

std::string label_of(const Program& program, const Node& node) {
  if (node.op == OpCode::load) return slot_name(program, node.in[0]);
  if (node.arity > 0) return operation_name(node);
  const ScalarLeaf& leaf = program.scalars()[node.in[0]];
  return constant_text(leaf.value, DType::float64) +
         (leaf.is_single() ? "" : ", ...");
}

std::string label_of(const Body& body, const BodyNode& node,
                     const std::string& name) {
  if (node.op == OpCode::load) {
    return name + mark(body.slots[node.index].strided);
  }
  if (node.op == OpCode::constant) {
    return constant_text(node.value, node.dtype);
  }
  return node.arity == 0 ? name : name + " = " + operation_name(node);
}

void draw_body(const Body& body, std::size_t number, std::ostream& out) {
  const BodyNames names = name_body(body);
  GraphWriter writer(out, "b" + std::to_string(number) + "_");
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

std::string graphviz(const Program& program, const std::string& name) {
  std::ostringstream out;
  out << "digraph " << quoted(name) << " {\n";
  GraphWriter writer(out, "v");
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

std::string graphviz(const Plan& plan, const std::string& name) {
  std::ostringstream out;
  out << "digraph " << quoted(name) << " {\n";
  for (std::size_t b = 0; b < plan.bodies.size(); ++b) {
    draw_body(plan.bodies[b], b, out);
  }
  out << "}\n";
  return out.str();
}

}  // namespace fuse
