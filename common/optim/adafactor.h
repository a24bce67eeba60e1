#pragma once

#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/foreach/foreach.h"
#include "fusebook/foreach/matrix_means.h"
#include "fusebook/foreach/reductions.h"
#include "fusebook/optim_base/gradients.h"
#include "fusebook/optim_base/list_optimizer.h"
#include "fusebook/optim_base/validate.h"
#include "fusebook/trace/operands.h"

namespace fuse {

/// Options of torch.optim.Adafactor, with its defaults.
struct AdafactorOptions {
  /// Stands for torch's None as the first of `eps`: the distance from 1 to the
  /// next number of the dtype that the parameter is updated in.
  static constexpr double none = -1;

  Scalar lr = 1e-2;           ///< The largest relative step.
  Scalar beta2_decay = -0.8;  ///< Power of the step that new squares weigh.
  /// Least mean of squares, whose square bounds them one by one; and the least
  /// root mean square of a parameter.
  std::array<Scalar, 2> eps = {none, 1e-3};
  Scalar d = 1.0;  ///< Root mean square above which updates are shortened.
  Scalar weight_decay = 0.0;  ///< Strength of the weight decay.
  bool maximize = false;      ///< Maximizes the objective.
  bool foreach = true;        ///< If false, updates one tensor at a time.

  template <class F>
  void for_each_scalar(F f) {
    f("lr", lr);
    f("beta2_decay", beta2_decay);
    f("eps", eps);
    f("d", d);
    f("weight_decay", weight_decay);
  }
  template <class F>
  void for_each_flag(F f) {
    f("maximize", maximize);
  }

  /// Throws Error for anything torch.optim.Adafactor rejects.
  void validate() const {
    check_not_negative("Adafactor", "learning rate", lr);
    check_argument("Adafactor", "beta2_decay", beta2_decay,
                   beta2_decay.value() <= 0);
    if (eps[0].value() != none) {
      check_not_negative("Adafactor", "epsilon1", eps[0]);
    }
    check_not_negative("Adafactor", "epsilon2", eps[1]);
    check_argument("Adafactor", "clipping threshold d", d, d.value() >= 1);
    check_not_negative("Adafactor", "weight_decay value", weight_decay);
  }
};

/// Adafactor (Shazeer and Stern, 2018) as torch.optim.Adafactor computes it: Adam
/// without momentum, that keeps of a matrix's squared gradients the averages of
/// rows and columns only. Tensors of more dimensions are matrices in their last
/// two; those of fewer keep all their squares.
///
/// Means of rows and columns are launches of their own; see MatrixMeans. Where
/// there are matrices, a compiled step so is four launches, with one graph break
/// between them, which fullgraph refuses: means of the squared gradients, averages
/// of them, the mean of these, and all the rest. Without matrices it is one.
class Adafactor : public ListOptimizer<AdafactorOptions> {
 public:
  using ListOptimizer::ListOptimizer;

 protected:
  std::span<const StateSpec> state_specs(
      const AdafactorOptions& /*o*/) const override {
    static constexpr StateSpec specs[] = {
        {.name = "row_var", .nonnegative = true, .shape = StateShape::rows},
        {.name = "col_var", .nonnegative = true, .shape = StateShape::columns},
        {.name = "variance",
         .nonnegative = true,
         .shape = StateShape::vectors}};
    return specs;
  }

  void update(const AdafactorOptions& o, const Batch& batch) const override {
    const TensorList& params = batch.params;
    const bool factored = !batch.states[0].empty();
    const Scalar eps =
        o.eps[0].value() == none ? Scalar(eps_of(params)) : o.eps[0];
    const TensorList squares =
        factored ? factored_squares(o, eps, batch) : own_squares(o, batch);
    foreach_add_(batch.steps, 1.0);
    const TensorList grads = signed_gradients(batch, o.maximize);
    const TensorList updates =
        foreach_mul(foreach_rsqrt(foreach_maximum(squares, eps * eps)), grads);

    // One number per parameter. A NaN is not larger, as torch compares.
    const TensorList& roots =
        batch.keep("roots", [&] { return roots_of(batch); });
    const TensorList sizes = foreach_div(foreach_norm(params), roots);
    const TensorList rates = foreach_rsqrt(batch.steps);
    const TensorList alphas =
        foreach_mul(larger(o.eps[1], sizes),
                    foreach_where(foreach_lt(rates, o.lr), rates, o.lr));
    const TensorList lengths =
        foreach_div(foreach_norm(updates), foreach_mul(roots, o.d));
    if (!is_off(o.weight_decay)) {
      foreach_mul_(params, 1.0 - o.lr * o.weight_decay);
    }
    foreach_sub_scaled_(params, updates,
                        foreach_div(alphas, larger(1.0, lengths)));
  }

 private:
  static constexpr double none = AdafactorOptions::none;

  static TensorList larger(const Scalar& number, const TensorList& numbers) {
    return foreach_where(foreach_gt(numbers, number), numbers, number);
  }

  static double eps_of(const TensorList& params) {
    switch (params.impl()->dtype) {
      case DType::float64:
        return std::numeric_limits<double>::epsilon();
      case DType::float16:
        return 0x1p-10;
      case DType::bfloat16:
        return 0x1p-7;
      default:
        return std::numeric_limits<float>::epsilon();
    }
  }

  // The root of the number of elements, for each parameter.
  static TensorList roots_of(const Batch& batch) {
    const auto& models = shapes_of(*batch.params.impl()).models();
    std::vector<Tensor> roots = scalars_beside(models);
    for (std::size_t i = 0; i < roots.size(); ++i) {
      roots[i].fill_(std::sqrt(double(models[i].numel())));
    }
    return TensorList::per_tensor(std::move(roots), "roots");
  }

  static TensorList own_squares(const AdafactorOptions& o, const Batch& batch) {
    const TensorList& variances = batch.states[2];
    foreach_lerp_(variances, foreach_square(batch.grads),
                  foreach_pow(foreach_add(batch.steps, 1.0), o.beta2_decay));
    return variances;
  }

  // Averages of rows and columns and their means, one behind the other, so that
  // one loop takes both. What they become waits beside them for the last launch: a
  // step that fails before it has changed none.
  struct Factors {
    explicit Factors(const Batch& batch)
        : means(batch.grads, {}),
          all(joined(batch.states[0], batch.states[1]), "factors"),
          new_means(joined(means.rows(), means.columns()), "means"),
          steps(TensorList::per_tensor(joined(batch.steps, batch.steps),
                                       "steps")),
          rows(empty_like_each(batch.states[0], dtype_of(batch)), "next rows"),
          columns(empty_like_each(batch.states[1], dtype_of(batch)),
                  "next columns"),
          next(joined(rows, columns), "next factors"),
          of_rows(rows, {.rows = false}) {}

    static std::vector<Tensor> joined(const TensorList& a,
                                      const TensorList& b) {
      std::vector<Tensor> both = a.tensors();
      both.insert(both.end(), b.begin(), b.end());
      return both;
    }
    // What the update computes in: averages in 16 bits may be wider until they are
    // stored.
    static DType dtype_of(const Batch& batch) {
      const DType kept = batch.states[0].impl()->dtype;
      return is_half(kept) ? batch.params.impl()->dtype : kept;
    }
    static std::vector<Tensor> empty_like_each(const TensorList& list,
                                               DType dtype) {
      std::vector<Tensor> tensors;
      for (const Tensor& each : list) {
        tensors.push_back(empty_like(each, dtype));
      }
      return tensors;
    }

    MatrixMeans means;
    TensorList all;
    TensorList new_means;
    TensorList steps;
    TensorList rows;
    TensorList columns;
    TensorList next;  // of `all`
    MatrixMeans of_rows;
  };

  // The steps are not counted yet.
  static TensorList factored_squares(const AdafactorOptions& o,
                                     const Scalar& eps, const Batch& batch) {
    auto& factors = batch.keep("factors", [&] { return Factors(batch); });
    factors.means.take(batch.grads, true);
    foreach_copy_(factors.next,
                  foreach_lerp(factors.all, factors.new_means,
                               foreach_pow(foreach_add(factors.steps, 1.0),
                                           o.beta2_decay)));
    factors.of_rows.take(factors.rows);
    foreach_copy_(factors.all, factors.next);
    return foreach_div(foreach_mul(factors.rows, factors.columns),
                       foreach_maximum(factors.of_rows.columns(), eps));
  }
};

}  // namespace fuse
