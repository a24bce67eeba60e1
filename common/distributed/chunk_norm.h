#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/distributed/ranks.h"
#include "fusebook/distributed/shares.h"
#include "fusebook/tensor/tensor.h"

namespace fuse {

/// The norm of gradients whose shares lie on all ranks, with the bits that
/// `get_total_norm` has in one process: each rank sums the chunks of its shares,
/// and all combine the sums of all chunks in the one order.
class ChunkNorm {
 public:
  ChunkNorm(Ranks& ranks, const std::vector<Share>& shares,
            std::vector<std::int64_t> numels, const CompileOptions& options);

  /// The norm; `own` are the views of this rank's shares with their gradients,
  /// and `dtypes` the dtype of each parameter's gradient, if it has one.
  double operator()(const std::vector<Tensor>& own,
                    const std::vector<std::optional<DType>>& dtypes);

 private:
  std::vector<double> own_sums(const std::vector<Tensor>& own);
  double sum_of_squares(DType dtype,
                        const std::vector<std::optional<DType>>& dtypes,
                        const std::vector<std::vector<double>>& chunks) const;

  Ranks& ranks_;
  const std::vector<Share>& shares_;
  std::vector<std::int64_t> numels_;
  std::vector<TensorList> chunks_;  // of this rank's gradients
  std::vector<TensorList> sums_;    // of their squares
  Compiled<std::function<void()>> sum_;
};

}  // namespace fuse
