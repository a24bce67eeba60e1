#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/distributed/open_sums.h"
#include "fusebook/distributed/ranks.h"
#include "fusebook/distributed/shares.h"
#include "fusebook/tensor/tensor_list.h"
#include "fusebook/trace/scalar.h"

namespace fuse {

/// What a step wants to know of all gradients before it uses them.
struct WantedOfSums {
  bool norm = false;
  bool finite = false;
};

/// Looks at sums of gradients whose shares lie on all ranks, and makes those that
/// are open: in one launch. The norm has the bits that `get_total_norm` has in one
/// process: each rank sums the chunks of its shares, and all combine the sums of
/// all chunks in the one order.
class ChunkNorm {
 public:
  ChunkNorm(Ranks& ranks, const std::vector<Share>& shares,
            std::vector<std::int64_t> numels, const CompileOptions& options);

  /// Makes this rank's sums, and scales them.
  void make(const OpenSums& sums, const SumFactors& factors,
            const WantedOfSums& wanted);
  /// True if this rank's are finite, before they are scaled if they were to be
  /// multiplied.
  bool is_finite() const { return finite_.value() != 0; }
  /// The norm of all; `dtypes` are those of each parameter's gradient, if it has
  /// one. All ranks call it.
  double norm(const std::vector<std::optional<DType>>& dtypes);
  /// What the launches have done.
  const Counters& counters() const { return look_.counters(); }

 private:
  void look();
  void note_finite(const TensorList& sums);
  std::vector<double> own_sums() const;
  double sum_of_squares(DType dtype,
                        const std::vector<std::optional<DType>>& dtypes,
                        const std::vector<std::vector<double>>& chunks) const;

  Ranks& ranks_;
  const std::vector<Share>& shares_;
  std::vector<std::int64_t> numels_;
  OpenSums chunks_;  // of this rank's gradients
  std::vector<OpenList> lists_;
  SumFactors factors_;
  WantedOfSums wanted_;
  std::vector<TensorList> squares_;  // summed, of each list
  Scalar finite_ = 1.0;
  Compiled<std::function<void()>> look_;
};

}  // namespace fuse
