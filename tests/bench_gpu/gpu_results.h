#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fuse::bench {

/// One way to make a step of one case. Times are medians in microseconds a
/// step, ratios medians over rounds in which everything was measured in turns;
/// 0 where there is none, as on the simulator.
struct GpuStep {
  std::string of_case;
  std::string variant;
  double us = 0;        ///< wall clock: many steps asked for, then waited for
  double event_us = 0;  ///< between two events of the device around them
  double host_us = 0;   ///< until the call returns; the device may be behind
  double ratio_to_limit = 0;        ///< by wall clock, to the device's copy
  double event_ratio_to_limit = 0;  ///< by events
  double ratio_to_by_hand = 0;      ///< by events, to the hand-written kernel
  std::int64_t launches = 0;        ///< of one step
  std::int64_t bytes = 0;           ///< moved by one step
};

/// What the first call of a new compiled step costs beyond a later one.
struct GpuCompile {
  std::string of_case;
  std::string variant;  ///< "cold": the compiler runs; "disk": from its cache
  std::int64_t tensors = 0;
  double us = 0;
};

/// Whether three compiled steps on the device gave the same bits as others.
struct GpuBits {
  std::string of_case;
  bool as_eager = false;  ///< operation by operation on the device
  bool as_cpu = false;    ///< operation by operation on the CPU
};

/// Whether one tensor was updated to its last element.
struct GpuReach {
  std::int64_t elements = 0;
  bool updated = false;
};

/// A case that could not be measured, or not all of it: for want of memory, or
/// because something failed.
struct GpuSkipped {
  std::string of_case;
  std::string reason;
  bool failed = false;
};

/// Everything measured so far.
struct GpuResults {
  bool simulated = false;
  std::int64_t scale = 1;
  std::vector<GpuStep> steps;
  std::vector<GpuCompile> compiles;
  std::vector<GpuBits> bits;
  std::vector<GpuReach> reach;
  std::vector<GpuSkipped> skipped;
};

/// The file of --json: the machine and the rows, as of the benchmark on the
/// CPU. What is 0 is null.
std::string json_of(const GpuResults& results);

/// Prints what is known of one case.
void print_case(const GpuResults& results, const std::string& of_case);

}  // namespace fuse::bench
