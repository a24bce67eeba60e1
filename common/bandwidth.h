#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensor.h"

namespace fuse {

/// The memory traffic of an optimizer step with next to no arithmetic: a pass
/// over `reads` float32 tensors of every size, of which the first `writes` are
/// written as well. How long `run` takes is the limit the machine sets for any
/// step that touches memory in this way.
///
/// Adam reads parameter, two averages and gradient, and writes all but the
/// gradient: 4 and 3, the defaults.
class AccessPattern {
 public:
  /// One entry in `sizes` a tensor, in elements. Throws Error for negative
  /// sizes or unless 1 <= writes <= reads <= 8.
  explicit AccessPattern(std::vector<std::int64_t> sizes, int reads = 4,
                         int writes = 3);

  /// One pass over everything, on all threads of the pool, split evenly.
  void run() const;
  /// Bytes one pass moves: every read and every write counted once.
  std::int64_t bytes() const;
  /// The `read`-th array of tensor `index`: zeros, unless someone fills it.
  const Tensor& array(std::size_t read, std::size_t index) const {
    return arrays_[read][index];
  }

 private:
  void run_range(std::int64_t begin, std::int64_t end) const;

  std::vector<std::int64_t> sizes_;
  std::vector<std::int64_t> starts_;
  std::int64_t total_ = 0;
  int reads_;
  int writes_;
  std::vector<std::vector<Tensor>> arrays_;
};

/// Median time of one pass, in microseconds, as `blocked_autorange` takes it.
double bandwidth_limit_us(const std::vector<std::int64_t>& sizes, int reads = 4,
                          int writes = 3, double min_run_time_s = 0.2);

}  // namespace fuse
