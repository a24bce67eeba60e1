#pragma once

#include <string>

#include "fusebook/ir/plan.h"

namespace fuse {

/// Writes the complete source of a kernel, for the CPU (`.cpp`) and for a GPU
/// (`.cu`), into the folder that the environment variable FUSEBOOK_KEEP_SOURCE
/// names; the files are called by a hash of their text. Does nothing without
/// that variable. Throws UsageError when the folder is missing or cannot be
/// written to.
void keep_source(const Plan& plan);
/// The same for a kernel that was written by hand, with all that is compiled.
void keep_cuda_source(const std::string& text);
/// What a GPU compiles for an operation outside of any compiled function (a CPU
/// interprets it); into the folder `at_once` there, if there is one.
void keep_quick_source(const Plan& plan);

}  // namespace fuse
