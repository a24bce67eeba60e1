#pragma once

#include <string>

#include "fusebook/programs/compile_options.h"
#include "fusebook/programs/kernel_store.h"
#include "fusebook/reports/guard_report.h"

namespace fuse {

/// What keeps a function from making one more kernel.
enum class KernelLimit {
  none,
  values,      ///< enough for other values of the same operations
  operations,  ///< enough for operations that differ
};

/// Whether a program that no kernel serves gets one of its own, as that segment
/// of a call.
KernelLimit limit_for(Policy policy, const KernelStore& kernels,
                      const Request& request, int segment);

/// Why none of the kernels serves a program in that segment of a call, in which
/// optimizers have stated these facts; of a function of that name, compiled
/// there.
RecompileReport explain(const std::string& function,
                        const std::source_location& place,
                        const KernelStore& kernels, const Request& request,
                        const Facts& facts, int segment);

/// What is said when a function first reaches a limit.
std::string limit_warning(KernelLimit limit, const RecompileReport& why);
/// What a report of its call says then, and every time after that.
std::string limit_event(KernelLimit limit);

}  // namespace fuse
