#include "fusebook/codegen/emit_kernel.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "fusebook/prelude/gpu_layout.h"
#include "fusebook/prelude/prelude_text.h"

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

// What the bodies that run in lanes need of operations.
void write_lane_operations(const Plan& plan, std::ostream& out) {
  std::set<OpCode> used;
  for (const Body& body : plan.bodies) {
    if (!runs_in_lanes(body)) continue;
    for (const BodyNode& node : body.nodes) {
      const bool in_lanes = node.rate == Rate::element && node.arity > 0;
      if (in_lanes && node.op != OpCode::cast) used.insert(node.op);
    }
  }
  if (used.empty()) return;
  out << "#if defined(FUSE_LANES)\n";
  for (const OpCode op : used) {
    const OpInfo& row = info(op);
    std::string parameters;
    std::string operands;
    for (int k = 0; k < row.arity; ++k) {
      const std::string separator = k == 0 ? "" : ", ";
      parameters += separator + "Floats " + "abcd"[k];
      operands += separator + "abcd"[k];
    }
    out << "template <>\nFUSE_FN Floats " << row.name << "<Floats>("
        << parameters << ") {\n  return in_lanes<" << row.name << "<float>>("
        << operands << ");\n}\n";
  }
  out << "#endif\n";
}

// `call` for each body: a plain call for one, a switch over what `which` says
// for several.
std::string dispatch(const Plan& plan, const std::string& which,
                     const std::string& call) {
  if (plan.bodies.size() == 1) return "    body0." + call + ";\n";
  std::ostringstream text;
  text << "    switch (" << which << ") {\n";
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
      << dispatch(plan, "row.body", "run(row, begin, end, whole)")
      << "  });\n}\n"
         "extern \"C\" FUSE_EXPORT void fuse_finish(const Launch* launch, i64 "
         "index) {\n"
      << runners.str() << "  const Row& row = launch->rows[index];\n  {\n"
      << dispatch(plan, "row.body", "finish(row)") << "  }\n}\n";
}

std::string bodies_text(const Plan& plan, Target target, PlaceText place_text) {
  std::ostringstream out;
  write_operations(plan, out);
  if (target == Target::cpu) write_lane_operations(plan, out);
  for (std::size_t b = 0; b < plan.bodies.size(); ++b) {
    write_body(plan.bodies[b], int(b), target, place_text, out);
  }
  return out.str();
}

// One runner a body, and what to do with `chunk`.
void write_gpu_entry_point(const Plan& plan, std::ostream& out) {
  const auto args = i64(plan.args.size());
  const bool by_value = args <= gpu_value_args;
  out << "struct Arguments {\n  double value[" << gpu_argument_count(args)
      << "];\n};\n"
      << "extern \"C\" __global__ void __launch_bounds__(" << gpu_block << ") "
      << gpu_kernel_name
      << "(\n"
         "    const __grid_constant__ GpuLaunch launch,\n"
         "    const __grid_constant__ Arguments arguments) {\n"
         "  const double* const args = "
      << (by_value ? "arguments.value" : "launch.table.args") << ";\n";
  for (std::size_t b = 0; b < plan.bodies.size(); ++b) {
    out << "  const BlockRunner<Body" << b << "> body" << b
        << "(launch, args);\n";
  }
  out << "  for_each_chunk(launch, [&](const Chunk& chunk) {\n"
      << dispatch(plan, "chunk.body", "run(chunk)") << "  });\n}\n";
}

}  // namespace

std::string generate_bodies(const Plan& plan) {
  return bodies_text(plan, Target::cpu, nullptr);
}

std::string annotated_bodies(const Plan& plan, Target target,
                             PlaceText place_text) {
  return bodies_text(plan, target, place_text);
}

std::string generate_cpu_source(const Plan& plan) {
  const bool in_lanes =
      std::any_of(plan.bodies.begin(), plan.bodies.end(), runs_in_lanes);
  std::ostringstream out;
  // Lanes are as wide as registers get; memory is touched half as wide.
  if (in_lanes) {
    out << "#if defined(__AVX512F__) && !defined(__clang__)\n"
           "#pragma GCC target(\"prefer-vector-width=512\")\n#endif\n";
  }
  out << device_text << "\n"
      << (in_lanes ? lanes_text : "")
      << "\n#define FUSE_EXPORT __attribute__((visibility(\"default\")))\n"
         "namespace fuse {\nnamespace device {\nconst Calls* calls;\n"
      << generate_bodies(plan);
  write_entry_points(plan, out);
  out << "}  // namespace device\n}  // namespace fuse\n";
  return out.str();
}

std::string generate_gpu_source(const Plan& plan) {
  return std::string("#define FUSE_GPU 1\n") + device_text + "\n" +
         gpu_loops_text + generate_gpu_part(plan);
}

std::string generate_gpu_part(const Plan& plan) {
  std::ostringstream out;
  out << "\nnamespace fuse {\nnamespace device {\n"
      << bodies_text(plan, Target::gpu, nullptr);
  write_gpu_entry_point(plan, out);
  out << "}  // namespace device\n}  // namespace fuse\n";
  return out.str();
}

std::string gpu_sums_source() {
  return std::string("#define FUSE_GPU 1\n") + device_text + "\n" + sums_text +
         "\n" + gpu_sums_text;
}

}  // namespace fuse
