#pragma once

#include <string>
#include <vector>

#include "bench_ranks/link_model.h"
#include "bench_ranks/overlap.h"
#include "bench_ranks/planning.h"
#include "bench_ranks/step_times.h"

namespace fuse::bench {

/// Everything that was measured, and what it says of other numbers of ranks.
struct Report {
  int ranks = 2;      ///< of the whole run
  int fitted_at = 2;  ///< ranks for which the model's numbers were fitted
  std::string mpi;    ///< the library and its version
  LinkModel link;
  Overlap overlap;                 ///< the same ranks
  double memory_bytes_per_us = 0;  ///< of each rank, where the model was fitted
  std::vector<LinkTimes> links;
  std::vector<StepTime> steps;
};

/// What is planned: a step of each kind on each number of ranks.
struct Planned {
  std::string of_case;
  int ranks = 1;
  PlannedStep plan;
  Expected expected;
};

/// The steps that a run measures and plans, for a number of ranks: each has
/// several micro-gradients a rank; in the second way they add up on it.
std::vector<PlannedStep> step_kinds(int ranks);
/// "exact" or "fast".
const char* name_of(const PlannedStep& plan);

/// The case whose steps are measured, and a larger one.
const Case& measured_case();
const Case& planned_case();

/// What the model says of all that is shown.
std::vector<Planned> plan_of(const Report& report);

/// Prints tables.
void print(const Report& report);
/// The file that the site draws.
std::string json_of(const Report& report);

}  // namespace fuse::bench
