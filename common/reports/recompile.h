#pragma once

#include <string>

#include "fusebook/programs/compile_options.h"
#include "fusebook/programs/kernel_store.h"
#include "fusebook/reports/guard_report.h"

namespace fuse {

/// Why a function may not make one more kernel.
enum class KernelLimit {
  none,
  values,      ///< too many values for the same operations
  operations,  ///< too many different operations
};

/// Whether a program that no kernel serves may get a new one, in that segment
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

/// The warning printed when a function first reaches a limit.
std::string limit_warning(KernelLimit limit, const RecompileReport& why);
/// The text for reports of its calls from then on.
std::string limit_event(KernelLimit limit);

}  // namespace fuse
