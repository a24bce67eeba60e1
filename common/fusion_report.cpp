#include "fusion_report.h"

#include <sstream>
#include <vector>

#include "describe.h"
#include "error.h"
#include "graph_dot.h"
#include "list_checks.h"
#include "plan_text.h"

namespace fuse {
namespace {

std::string counted(std::int64_t count, const std::string& what,
                    const char* ending = "s") {
  return std::to_string(count) + " " + what + (count == 1 ? "" : ending);
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
  for (const Row& row : compiled.table.rows()) {
    if (row.body == body) sizes.push_back(row.numel);
  }
  return sizes;
}

// Lists share a loop when operations join them, or when the same is done to
// them.
std::string why_apart(const std::vector<std::int64_t>& first,
                      const std::vector<std::int64_t>& other) {
  if (first.size() != other.size()) {
    return "other lists, of " + counted(std::int64_t(other.size()), "tensor");
  }
  return first != other ? "lists of other shapes"
                        : "other operations, and none that takes lists of both";
}

void write_launch(const CompiledProgram& compiled, std::ostream& out) {
  const auto bodies = int(compiled.plan.bodies.size());
  const auto tensors = std::int64_t(compiled.table.rows().size());
  out << counted(tensors, "tensor") << " in " << counted(bodies, "loop")
      << "\n";
  const std::vector<std::int64_t> first = numels(compiled, 0);
  for (int b = 0; b < bodies; ++b) {
    if (bodies > 1) out << "  loop " << b + 1;
    if (b > 0) {
      out << ", apart from loop 1: " << why_apart(first, numels(compiled, b));
    }
    if (bodies > 1) out << "\n";
    out << indented(describe(compiled.plan.bodies[std::size_t(b)]));
  }
}

}  // namespace

std::string fusion_report(const Function& function) {
  const FunctionOptions& options = function.options();
  std::ostringstream out;
  out << options.name << " at " << at(options.place) << ": "
      << counted(function.last_launches(), "launch", "es")
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
                " was never called; call it first, so that there is "
                "something to look at");
  }
  if (function.last_launches() == launches) return;
  throw Error("assert_fused at " + at(place) + ": expected " +
              counted(launches, "launch", "es") + ", but " +
              fusion_report(function));
}

std::string graph_text(const std::string& function, const Program& program,
                       const Plan& plan) {
  return function + ", as recorded\n" + program.dump() + function +
         ", as planned\n" + dump(plan) + dot(program, function + " recorded") +
         dot(plan, function + " planned");
}

}  // namespace fuse
