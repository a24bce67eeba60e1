#include "fusebook/optim_products/muon.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "fusebook/foreach/foreach.h"
#include "fusebook/foreach/reductions.h"
#include "fusebook/nn/matmul.h"
#include "fusebook/optim_base/gradients.h"
#include "fusebook/support/call_place.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/autograd.h"
#include "fusebook/trace/operands.h"

namespace fuse {
namespace {

constexpr int most_steps = 100;

bool is_tall(const Tensor& matrix) {
  return matrix.shape()[0] > matrix.shape()[1];
}

void check_matrix(const Tensor& param) {
  if (param.dim() == 2) return;
  throw Error("Muon: a parameter has shape " + to_string(param.shape()) +
              at_call() +
              ", but it takes matrices only; give the others to AdamW");
}

template <class F>
std::vector<Tensor> for_each_matrix(const TensorList& list, F f) {
  std::vector<Tensor> results;
  results.reserve(list.size());
  for (const Tensor& each : list.tensors()) results.push_back(f(each));
  return results;
}

// With as many rows as each matrix.
std::vector<Tensor> squares_beside(const std::vector<Tensor>& matrices) {
  std::vector<Tensor> squares;
  squares.reserve(matrices.size());
  for (const Tensor& each : matrices) {
    const std::int64_t rows = each.shape()[0];
    squares.push_back(empty({rows, rows}, each.dtype(), each.device()));
  }
  return squares;
}

// One step: x becomes a x + (b g + c g g) x, where g is its Gram matrix, the
// smaller one of its two. Of a tall matrix it is on the right.
TensorList closer_to_orthogonal(const MuonOptions& o, const TensorList& x) {
  const auto& [a, b, c] = o.ns_coefficients;
  const auto left = for_each_matrix(
      x, [](const Tensor& each) { return is_tall(each) ? each.t() : each; });
  const auto right = for_each_matrix(
      x, [](const Tensor& each) { return is_tall(each) ? each : each.t(); });
  const std::vector<Tensor> grams = squares_beside(left);
  matmul_each_into(grams, left, right);
  const std::vector<Tensor> squares = squares_beside(left);
  matmul_each_into(squares, grams, grams);
  const TensorList factors = foreach_mul(TensorList(grams), b);
  foreach_add_scaled_(factors, TensorList(squares), c);
  const TensorList next = foreach_mul(x, a);
  std::vector<Tensor> first;
  std::vector<Tensor> second;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool tall = is_tall(x[i]);
    first.push_back(tall ? x[i] : factors[i]);
    second.push_back(tall ? factors[i] : x[i]);
  }
  matmul_each_into(next.tensors(), first, second, true);
  return next;
}

// What the step will make orthogonal. Products come between this and the last
// launch, so the averages change only there: a step that fails has changed nothing.
TensorList direction(const MuonOptions& o, const Batch& batch) {
  const TensorList averages =
      foreach_lerp(batch.states[0], batch.grads, 1.0 - o.momentum);
  return o.nesterov ? foreach_lerp(batch.grads, averages, o.momentum)
                    : averages;
}

double ratio_for(const std::string& adjust, const Shape& shape) {
  const auto rows = double(shape[0]);
  const auto columns = double(shape[1]);
  if (adjust == "match_rms_adamw") {
    return 0.2 * std::sqrt(std::max(rows, columns));
  }
  const double least = adjust == "original" ? 1 : 0;
  return std::sqrt(std::max(least, rows / columns));
}

// A number for each matrix, beside it, which stays from step to step.
const TensorList& rate_ratios(const MuonOptions& o, const Batch& batch) {
  return batch.keep("rate_ratios " + o.adjust_lr_fn, [&] {
    const auto& models = shapes_of(*batch.params.impl()).models();
    std::vector<Tensor> ratios = scalars_beside(models);
    for (std::size_t i = 0; i < ratios.size(); ++i) {
      ratios[i].fill_(ratio_for(o.adjust_lr_fn, models[i].shape()));
    }
    return TensorList::per_tensor(std::move(ratios), "rate_ratios");
  });
}

}  // namespace

void MuonOptions::validate() const {
  check_not_negative("Muon", "learning rate", lr);
  check_not_negative("Muon", "momentum value", momentum);
  check_not_negative("Muon", "weight_decay value", weight_decay);
  if (ns_steps < 0 || ns_steps >= most_steps) {
    throw Error(fmt::format(
        "Muon: invalid ns_steps: {}{}; it must be at least 0 and below {}",
        ns_steps, at_call(), most_steps));
  }
  constexpr std::string_view known[] = {"original", "match_rms_adamw",
                                        "spectral_unclamped"};
  if (std::ranges::find(known, adjust_lr_fn) != std::end(known)) return;
  throw Error("Muon: invalid adjust_lr_fn: \"" + adjust_lr_fn + "\"" +
              at_call() +
              "; it is \"original\", \"match_rms_adamw\" or "
              "\"spectral_unclamped\"");
}

void Muon::check_matrices() const {
  for (const Tensor& param : parameters()) check_matrix(param);
}

void Muon::update(const MuonOptions& o, const Batch& batch) const {
  const NoGradGuard guard;
  const TensorList& params = batch.params;
  const TensorList& averages = batch.states[0];
  for (const Tensor& each : shapes_of(*params.impl()).models()) {
    check_matrix(each);
  }
  TensorList x = direction(o, batch);
  if (is_reduced(params.impl()->dtype)) x = foreach_to(x, DType::float32);
  x = foreach_div(x, foreach_maximum(foreach_norm(x), o.eps));
  for (int step = 0; step < o.ns_steps; ++step) x = closer_to_orthogonal(o, x);

  foreach_add_(batch.steps, 1.0);
  foreach_lerp_(averages, batch.grads, 1.0 - o.momentum);
  if (!is_off(o.weight_decay)) {
    foreach_mul_(params, 1.0 - o.lr * o.weight_decay);
  }
  foreach_sub_scaled_(params, x, foreach_mul(rate_ratios(o, batch), o.lr));
}

}  // namespace fuse
