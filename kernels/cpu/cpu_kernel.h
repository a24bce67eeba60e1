#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "fusebook/ir/plan.h"
#include "fusebook/runtime/kernel.h"
#include "fusebook/runtime/launch_table.h"
#include "fusebook/runtime/phase_gate.h"

namespace fuse {

/// A kernel whose parts run on CPU threads.
class CpuKernel : public Kernel {
 public:
  void launch(const Table& table) final;

 protected:
  /// Called before the parts of a launch, of all phases, run: allocates memory
  /// for that many.
  virtual void prepare(std::size_t /*parts*/) {}
  /// Runs one part of the table; must not throw.
  virtual void run(const Table& table, std::size_t part) = 0;
  /// Reduces chunks [begin, end) of the table, as its part number `part`; must
  /// not throw.
  virtual void reduce(const Table& table, std::size_t part,
                      IndexRange chunks) = 0;
  /// Does the per-tensor stores of a row shared by several parts.
  virtual void finish(const Table& table, i64 row) = 0;

 private:
  void launch_phases(const Table& table);
  void reduce_part(const Table& table, std::size_t phase, std::size_t part);
  void open(const Table& table, std::size_t phase);

  PhaseGate gate_;
};

/// Runs the plan operation by operation over tiles of 512 elements, with the
/// prebuilt loops. Needs no compiler.
std::shared_ptr<Kernel> make_interpreter(const Plan& plan);

/// The plan as generated code; `reduces` if it has more than one phase. Throws
/// NoCompiler or Error like build_library.
std::shared_ptr<Kernel> make_cpu_kernel(const std::string& source,
                                        bool reduces = false);

}  // namespace fuse
