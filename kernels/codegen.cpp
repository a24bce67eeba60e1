#include "codegen.h"

#include <set>
#include <sstream>

namespace fuse {
namespace {

void write_operations(const Plan& plan, std::ostream& out) {
  std::set<OpCode> used;
  for (const Body& body : plan.bodies) {
    for (const BodyNode& node : body.nodes) {
      if (node.arity > 0 && node.op != OpCode::cast) used.insert(node.op);
    }
  }
  for (const OpCode op : used) {
    const OpInfo& row = info(op);
    out << "template <class T>\nFUSE_FN T " << row.name << "(";
    for (int k = 0; k < row.arity; ++k) {
      out << (k == 0 ? "T " : ", T ") << "abcd"[k];
    }
    out << ") {\n  return " << row.value << ";\n}\n";
  }
}

// fuse_run over `argument` and `call` for each body: a plain call for one, a
// switch for several.
std::string dispatch(const Plan& plan, const std::string& call) {
  if (plan.bodies.size() == 1) return "    body0." + call + ";\n";
  std::ostringstream text;
  text << "    switch (row.body) {\n";
  for (std::size_t b = 0; b < plan.bodies.size(); ++b) {
    text << "      case " << b << ":\n        body" << b << "." << call
         << ";\n        break;\n";
  }
  text << "    }\n";
  return text.str();
}

void write_entry_points(const Plan& plan, std::ostream& out) {
  std::ostringstream runners;
  for (std::size_t b = 0; b < plan.bodies.size(); ++b) {
    runners << "  Runner<Body" << b << "> body" << b << "(*launch);\n";
  }
  out << "extern \"C\" FUSE_EXPORT void fuse_init(const Calls* table) {\n"
         "  calls = table;\n}\n"
         "extern \"C\" FUSE_EXPORT void fuse_run(const Launch* launch, const "
         "Part* part) {\n"
      << runners.str()
      << "  for_each_row(*launch, *part, [&](const Row& row, i64 begin, i64 "
         "end, bool whole) {\n"
      << dispatch(plan, "run(row, begin, end, whole)")
      << "  });\n}\n"
         "extern \"C\" FUSE_EXPORT void fuse_finish(const Launch* launch, i64 "
         "index) {\n"
      << runners.str() << "  const Row& row = launch->rows[index];\n  {\n"
      << dispatch(plan, "finish(row)") << "  }\n}\n";
}

std::string bodies_text(const Plan& plan, PlaceText place_text) {
  std::ostringstream out;
  write_operations(plan, out);
  for (std::size_t b = 0; b < plan.bodies.size(); ++b) {
    write_body(plan.bodies[b], int(b), place_text, out);
  }
  return out.str();
}

}  // namespace

std::string generate_bodies(const Plan& plan) {
  return bodies_text(plan, nullptr);
}

std::string annotated_bodies(const Plan& plan, PlaceText place_text) {
  return bodies_text(plan, place_text);
}

std::string generate_cpu_source(const Plan& plan) {
  std::ostringstream out;
  out << device_text
      << "\n#define FUSE_EXPORT __attribute__((visibility(\"default\")))\n"
         "namespace fuse {\nnamespace device {\nconst Calls* calls;\n"
      << generate_bodies(plan);
  write_entry_points(plan, out);
  out << "}  // namespace device\n}  // namespace fuse\n";
  return out.str();
}

}  // namespace fuse
