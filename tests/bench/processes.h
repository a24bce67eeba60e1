#pragma once

#include <string>
#include <vector>

#include "bench/cases.h"
#include "bench/reading.h"

namespace fuse::bench {

/// Runs this program again with `--measure PART` and returns what it tells.
/// Throws Error with its output when it fails.
std::vector<Reading> measure_in_process(int part, int threads);

/// What a program that uses OpenMP itself measures: a compiled step "alone" and
/// "after OpenMP", an OpenMP loop "alone" and "after a step". Nothing where the
/// build has no OpenMP.
std::vector<Reading> measure_beside_openmp(int threads);

/// Runs PyTorch over a case, with as many threads and a memory allocator that
/// keeps what was freed: its Adam ("step"), or what surrounds a step, too
/// ("tail"). FUSEBOOK_PYTHON_TORCH names the Python that has it. Throws Error when
/// it is not installed.
std::vector<Reading> measure_torch(const std::string& kind, const Case& wanted,
                                   int threads);

}  // namespace fuse::bench
