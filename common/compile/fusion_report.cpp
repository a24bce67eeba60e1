#include "fusebook/compile/fusion_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>

#include "fusebook/codegen/print_plan.h"
#include "fusebook/programs/compiled_program.h"
#include "fusebook/support/error.h"
#include "fusebook/support/source_place.h"

namespace fuse {
namespace {

std::string counted(std::int64_t count, const std::string& what,
                    const char* ending = "s") {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : ending);
}

std::string indented(const std::string& text) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    result += "    " + line + "\n";
  }
  return result;
}

// Sizes of the tensors that run through a body, in the order of the table.
std::vector<std::int64_t> numels(const CompiledProgram& compiled, int body) {
  std::vector<std::int64_t> sizes;
  std::int64_t tensors = 0;
  for (const Row& row : compiled.table.rows()) {
    const bool line = row.entry < tensors;  // another line of the same tensor
    tensors = row.entry + 1;
    if (row.body != body) continue;
    if (!line) sizes.push_back(0);
    sizes.back() += row.numel;
  }
  return sizes;
}

// The bodies that tensors of the launch run through, in order; the kernel may
// have others.
std::vector<int> loops_of(const CompiledProgram& compiled) {
  std::vector<int> used;
  for (int b = 0; b < int(compiled.plan.bodies.size()); ++b) {
    const auto& instances = compiled.plan.instances;
    const bool any = std::any_of(
        instances.begin(), instances.end(),
        [&](const Instance& instance) { return instance.body == b; });
    if (any) used.push_back(b);
  }
  return used;
}

// Lists share a loop if an operation joins them, or if the same operations
// apply to them.
std::string why_apart(const CompiledProgram& compiled, int first, int b) {
  const std::vector<std::int64_t> sizes = numels(compiled, first);
  const std::vector<std::int64_t> other = numels(compiled, b);
  const auto& bodies = compiled.plan.bodies;
  if (sizes.size() != other.size()) {
    return "its lists have " + counted(std::int64_t(other.size()), "tensor");
  }
  if (sizes != other) return "its lists have different shapes";
  return bodies[first].strided() != bodies[b].strided()
             ? "only one of them is strided"
             : "different operations, none of which joins their lists";
}

// What a phase reads and stores, and its loops.
void write_phases(const CompiledProgram& compiled, std::ostream& out) {
  const Plan& plan = compiled.plan;
  const auto bytes = compiled.table.phase_bytes();
  out << counted(compiled.table.tensors(), "tensor") << " in "
      << counted(plan.phases(), "phase") << "\n";
  for (int phase = 0; phase < plan.phases(); ++phase) {
    const auto loops = plan.bodies_of(phase);
    out << "  phase " << phase + 1 << ": "
        << counted(std::int64_t(loops.size()), "loop") << ", "
        << counted(bytes[std::size_t(phase)], "byte")
        << (phase + 1 < plan.phases() ? ", reduced for what follows" : "")
        << "\n";
    for (const std::size_t b : loops) out << indented(summary(plan.bodies[b]));
  }
}

void write_launch(const CompiledProgram& compiled, std::ostream& out) {
  if (compiled.plan.phases() > 1) {
    write_phases(compiled, out);
    return;
  }
  const std::vector<int> loops = loops_of(compiled);
  const auto count = std::int64_t(loops.size());
  out << counted(compiled.table.tensors(), "tensor") << " in "
      << counted(count, "loop") << "\n";
  for (std::size_t k = 0; k < loops.size(); ++k) {
    if (count > 1) out << "  loop " << k + 1;
    if (k > 0) {
      out << ", separate from loop 1: "
          << why_apart(compiled, loops[0], loops[k]);
    }
    if (count > 1) out << "\n";
    out << indented(summary(compiled.plan.bodies[loops[k]]));
  }
}

}  // namespace

std::string fusion_report(const Function& function) {
  const std::string name =
      function.options().name + " at " + short_place(function.place());
  std::ostringstream out;
  if (!function.inlined_into().empty()) {
    out << name << ": the last call became part of " << function.inlined_into()
        << ", which counts its launches and reports them\n";
    return out.str();
  }
  out << name << ": " << counted(function.last_launches(), "launch", "es")
      << " in the last call\n";
  int launch = 0;
  for (const CallEvent& event : function.last_call()) {
    if (event.launched != nullptr) {
      out << "launch " << ++launch << ": ";
      write_launch(*event.launched, out);
    } else {
      out << event.text << "\n";
    }
  }
  return out.str();
}

void check_launches(const Function& function, std::int64_t launches,
                    std::source_location place) {
  if (!function.was_called()) {
    throw Error("assert_fused at " + at(place) + ": " +
                function.options().name +
                " was never called; call it first, so that there is a "
                "launch to check");
  }
  if (function.last_launches() == launches) return;
  throw Error("assert_fused at " + at(place) + ": expected " +
              counted(launches, "launch", "es") + ", but " +
              fusion_report(function));
}

}  // namespace fuse
