#include "fusebook/codegen/emit_operations.h"

#include <set>

#include "fusebook/codegen/emit_body.h"
#include "fusebook/codegen/template_text.h"
#include "fusebook/ops/reductions.h"
#include "fusebook/support/join.h"

namespace fuse {
namespace {

// True for what is written out where it is used.
bool is_own(OpCode op) { return op == OpCode::cast || op == OpCode::draw; }

// The operands of an operation, each behind a word: "T a, T b".
std::string operands(const OpInfo& row, const std::string& word) {
  std::string all;
  for (int k = 0; k < row.arity; ++k) add_item(all, word + "abcd"[k]);
  return all;
}

std::string value_in_lanes(const OpInfo& row) {
  if (row.kind == OpKind::bits) return std::string(row.value);
  const char* const value = row.kind == OpKind::choice
                                ? "@name@_in_lanes(@operands@)"
                                : "in_lanes<@name@<float>>(@operands@)";
  return fill(value, {{"name", std::string(row.name)},
                      {"operands", operands(row, "")}});
}

}  // namespace

std::string operations_text(const Plan& plan) {
  std::set<OpCode> used;
  for (const Body& body : plan.bodies) {
    for (const BodyNode& node : body.nodes) {
      if (node.arity == 0 || is_own(node.op)) continue;
      if (!is_reduction(node.op)) used.insert(node.op);
    }
  }
  std::string text;
  for (const OpCode op : used) {
    const OpInfo& row = info(op);
    text += fill(R"(template <class T>
FUSE_FN T @name@(@parameters@) {
  return @value@;
}
)",
                 {{"name", std::string(row.name)},
                  {"parameters", operands(row, "T ")},
                  {"value", std::string(row.value)}});
  }
  return text;
}

std::string lane_operations_text(const Plan& plan) {
  std::set<OpCode> used;
  for (const Body& body : plan.bodies) {
    if (!runs_in_lanes(body)) continue;
    for (const BodyNode& node : body.nodes) {
      const bool in_lanes = node.rate == Rate::element && node.arity > 0;
      if (in_lanes && !is_own(node.op)) used.insert(node.op);
    }
  }
  if (used.empty()) return "";
  std::string text = "#if defined(FUSE_LANES)\n";
  for (const OpCode op : used) {
    const OpInfo& row = info(op);
    text += fill(R"(template <>
FUSE_FN Floats @name@<Floats>(@parameters@) {
  return @value@;
}
)",
                 {{"name", std::string(row.name)},
                  {"parameters", operands(row, "Floats ")},
                  {"value", value_in_lanes(row)}});
  }
  return text + "#endif\n";
}

}  // namespace fuse
