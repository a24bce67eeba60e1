#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/nn/functional.h"
#include "fusebook/optim_base/list_optimizer.h"
#include "fusebook/optim_base/validate.h"

namespace fuse {

/// Options of torch.optim.Muon, with its defaults.
struct MuonOptions {
  Scalar lr = 1e-3;           ///< Learning rate.
  Scalar weight_decay = 0.1;  ///< Strength of the weight decay.
  Scalar momentum = 0.95;     ///< Decay of the average of gradients.
  bool nesterov = true;       ///< Looks ahead along the average.
  /// Of x, x^3 and x^5 in the polynomial that a step of the iteration applies to
  /// the singular values.
  std::array<Scalar, 3> ns_coefficients = {3.4445, -4.7750, 2.0315};
  Scalar eps = 1e-7;  ///< The least norm that is divided by.
  int ns_steps = 5;   ///< Steps of the iteration, fewer than 100.
  /// How the rate depends on the shape [A, B] of a matrix. "original":
  /// sqrt(max(1, A / B)) times as large; "match_rms_adamw": 0.2 sqrt(max(A, B))
  /// times, which makes updates as large as those of AdamW; "spectral_unclamped":
  /// sqrt(A / B) times.
  std::string adjust_lr_fn = "original";
  bool foreach = true;  ///< If false, updates one tensor at a time.

  template <class F>
  void for_each_scalar(F f) {
    f("lr", lr);
    f("weight_decay", weight_decay);
    f("momentum", momentum);
    f("ns_coefficients", ns_coefficients);
    f("eps", eps);
  }
  template <class F>
  void for_each_flag(F f) {
    f("nesterov", nesterov);
  }

  /// Throws Error for anything torch.optim.Muon rejects.
  void validate() const;
};

/// Muon (Jordan, 2024) as torch.optim.Muon computes it: a step goes along the
/// momentum of a matrix, made nearly orthogonal by a Newton-Schulz iteration.
/// Throws Error for parameters that are not matrices; give those to AdamW.
///
/// Matrix products are not part of a kernel: the host computes them in float32
/// (float64 for parameters of that type) with Eigen, or a GPU with cuBLAS, three
/// for each matrix and step of the iteration; torch iterates in bfloat16. The
/// threads of the host share those of all matrices; cuBLAS is given those of one
/// shape in one call. They carry no promise of bits across machines. All the rest,
/// for all matrices together, takes `ns_steps` + 2 launches when compiled: momentum
/// and its norms in one, one in each step of the iteration, and the update of the
/// parameters. In between there are `ns_steps` + 1 graph breaks, so that fullgraph
/// refuses it.
class Muon : public ListOptimizer<MuonOptions> {
 public:
  explicit Muon(std::vector<Tensor> params, MuonOptions options = {})
      : ListOptimizer(std::move(params), std::move(options)) {
    check_matrices();
  }
  /// Named parameters, which checkpoints match by name.
  explicit Muon(NamedParams params, MuonOptions options = {})
      : ListOptimizer(std::move(params), std::move(options)) {
    check_matrices();
  }
  /// Groups without their own options get `options`.
  explicit Muon(std::vector<Group> groups, MuonOptions options = {})
      : ListOptimizer(std::move(groups), std::move(options)) {
    check_matrices();
  }

 protected:
  std::span<const StateSpec> state_specs(const MuonOptions&) const override {
    static constexpr StateSpec specs[] = {{"momentum_buffer"}};
    return specs;
  }

  void update(const MuonOptions& o, const Batch& batch) const override;

 private:
  void check_matrices() const;
};

}  // namespace fuse
