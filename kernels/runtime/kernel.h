#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "fusebook/runtime/launch_table.h"

namespace fuse {

/// Runs a plan over a bound table.
class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;
  /// Runs the whole table. Not thread-safe.
  virtual void launch(const Table& table) = 0;
  /// How many launches that was: one, unless each phase takes one of its own.
  virtual int launches(const Table& /*table*/) const { return 1; }
  /// Memory for the results of reductions, where the kernel can write it, valid
  /// as long as the kernel. All tables share it: launches follow each other.
  virtual double* numbers(std::size_t count);

 private:
  struct Numbers {
    std::unique_ptr<double[]> memory;
    std::size_t count;
  };
  std::vector<Numbers> numbers_;  // the largest last
};

/// `table.bind` with the memory of a kernel.
bool bind_table(Table& table, Kernel& kernel, const Plan& plan,
                const Program& program, int threads);

}  // namespace fuse
