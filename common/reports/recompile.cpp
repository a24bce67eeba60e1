#include "fusebook/reports/recompile.h"

#include <fmt/core.h>

#include "fusebook/reports/recording_diff.h"
#include "fusebook/support/join.h"

namespace fuse {

KernelLimit limit_for(Policy policy, const KernelStore& kernels,
                      const Request& request, int segment) {
  if (policy == Policy::specialize &&
      kernels.made_for(request) >= specialization_limit) {
    return KernelLimit::values;
  }
  const bool is_full = kernels.made_in(segment) >= operations_limit;
  return is_full && kernels.has_new_operations(request)
             ? KernelLimit::operations
             : KernelLimit::none;
}

RecompileReport explain(const std::string& function,
                        const std::source_location& place,
                        const KernelStore& kernels, const Request& request,
                        const Facts& facts, int segment) {
  RecompileReport why = {function, log_place(place), {}, {}, {}};
  const auto& programs = kernels.programs();
  for (std::size_t i = programs.size(); i-- > 0;) {
    const CompiledProgram& known = *programs[i];
    if (!request.is_like(known)) continue;
    add_failures(why, known.plan, request.program);
  }
  const CompiledProgram* before = kernels.last_in(segment);
  if (before == nullptr && !programs.empty()) before = programs.back().get();
  if (!why.failures.empty() || before == nullptr) return why;
  add_changes(why, before->program, request.program);
  if (why.changes.empty()) {
    add_difference(why, diff_recordings({before->program, before->facts},
                                        {request.program, facts}));
  }
  return why;
}

std::string limit_warning(KernelLimit limit, const RecompileReport& why) {
  const std::string function = "function " + why.where() + " has ";
  if (limit == KernelLimit::values) {
    return fmt::format(
        "{}{} kernels for values of {}; for other values it runs eagerly from "
        "now on. Make it a 0-d tensor, or compile with Policy::promote",
        function, specialization_limit, join(why.moved()));
  }
  std::string last;
  for (const std::string& change : why.changes) last += " (" + change + ")";
  return fmt::format(
      "{}{} kernels for different operations; others run eagerly from now "
      "on{}. Keep switches and the lengths of loops constant, or compile a "
      "function for each way it is called",
      function, operations_limit, last);
}

std::string limit_event(KernelLimit limit) {
  return limit == KernelLimit::values
             ? "eager: the policy allows no more kernels for these operations"
             : "eager: the function has the maximum number of kernels for "
               "different operations";
}

}  // namespace fuse
