#pragma once

#include <cstdint>
#include <memory>

#include "fusebook/device/device.h"
#include "fusebook/ir/plan.h"
#include "fusebook/runtime/kernel.h"
#include "fusebook/runtime/launch_table.h"
#include "fusebook/trace/facts.h"

namespace fuse {

/// A program with the kernel that runs it, for one structure and one set of
/// baked scalars, and the table of its last launch.
struct CompiledProgram {
  std::uint64_t hash = 0;
  Program program;  ///< structure and scalars; the lists may no longer exist
  Facts facts;      ///< from the call that created it
  Plan plan;
  std::shared_ptr<Kernel> kernel;
  Table table;
  bool counts_as_launch = true;
  /// True if the kernel was made for it, false if an earlier program's bodies
  /// serve.
  bool made = true;
  /// Made for operations that no kernel of the function had a body for, in that
  /// segment of a call.
  bool new_operations = false;
  int segment = 0;
  std::uint64_t last_call = 0;  ///< number of the call that used it last
  bool captured = false;        ///< a graph refers to it, so it must stay
};

/// The device of its lists.
Device device_of(const Program& program);

}  // namespace fuse
