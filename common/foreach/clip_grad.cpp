#include "fusebook/foreach/clip_grad.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "fusebook/foreach/foreach.h"
#include "fusebook/foreach/reductions.h"
#include "fusebook/support/call_place.h"
#include "fusebook/support/error.h"
#include "fusebook/support/number_text.h"
#include "fusebook/support/source_place.h"
#include "fusebook/tensor/kept_gradients.h"

namespace fuse {
namespace {

// What torch adds to the norm before it divides by it.
constexpr double epsilon = 1e-6;

void check_defined(const char* name, const std::vector<Tensor>& tensors,
                   std::source_location place) {
  const auto gone =
      std::find_if(tensors.begin(), tensors.end(),
                   [](const Tensor& each) { return !each.defined(); });
  if (gone == tensors.end()) return;
  throw Error(fmt::format("{} at {}: tensor {} is undefined", name,
                          at(CallPlace::or_else(place)),
                          gone - tensors.begin()));
}

// The gradients of parameters: lists to read, whose order their norm depends on,
// and lists to write, which may be those of optimizers.
struct Gradients {
  std::vector<TensorList> read;
  std::vector<TensorList> written;
};

std::vector<Tensor> grads_of(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> grads;
  grads.reserve(parameters.size());
  for (const Tensor& each : parameters) {
    if (each.grad().defined()) grads.push_back(each.grad());
  }
  return grads;
}

Gradients gradients(const char* name, const std::vector<Tensor>& parameters,
                    std::source_location place) {
  check_defined(name, parameters, place);
  if (const auto all = kept_gradients(parameters)) return {{*all}, {*all}};
  Gradients grads;
  grads.read = lists_by_dtype(grads_of(parameters), "grads");
  std::vector<Tensor> others;
  grads.written = kept_parts(parameters, others);
  if (grads.written.empty()) return {grads.read, grads.read};
  for (TensorList& list : lists_by_dtype(grads_of(others), "grads")) {
    grads.written.push_back(std::move(list));
  }
  return grads;
}

Scalar apply(OpCode op, const Scalar& a, std::source_location place) {
  const std::array operands = {&a};
  return scalar_apply(op, operands, place);
}

// The norm of two vectors together, from those of each.
Scalar joined_norm(const Scalar& a, const Scalar& b, double norm_type,
                   std::source_location place) {
  if (norm_type == 1) return a + b;
  if (std::isinf(norm_type)) return scalar_op(OpCode::maximum, a, b);
  if (norm_type == 2) return apply(OpCode::sqrt, a * a + b * b, place);
  const Scalar power(norm_type, place);
  return scalar_op(
      OpCode::pow,
      scalar_op(OpCode::pow, a, power) + scalar_op(OpCode::pow, b, power),
      Scalar(1 / norm_type, place));
}

void check_finite(const Scalar& norm, double norm_type,
                  std::source_location place) {
  if (std::isfinite(norm.value())) return;
  throw Error(fmt::format(
      "the total norm of order {} is {}, so it cannot be clipped, at {}; to "
      "scale the gradients all the same, leave out error_if_nonfinite",
      number_text(norm_type), number_text(norm.value()),
      at(CallPlace::or_else(place))));
}

Scalar norm_of(const std::vector<TensorList>& lists, double norm_type,
               bool error_if_nonfinite, std::source_location place) {
  if (lists.empty()) return {0.0, place};
  Scalar norm = total_norm(lists.front(), norm_type, place);
  for (std::size_t k = 1; k < lists.size(); ++k) {
    norm = joined_norm(norm, total_norm(lists[k], norm_type, place), norm_type,
                       place);
  }
  if (error_if_nonfinite) check_finite(norm, norm_type, place);
  return norm;
}

void scale(const std::vector<TensorList>& grads, const Scalar& max_norm,
           const Scalar& norm, std::source_location place) {
  const Scalar factor = max_norm / (norm + Scalar(epsilon, place));
  const Scalar at_most_1 =
      scalar_op(OpCode::minimum, factor, Scalar(1.0, place));
  for (const TensorList& list : grads) foreach_mul_(list, at_most_1, place);
}

}  // namespace

Scalar get_total_norm(const std::vector<Tensor>& tensors, double norm_type,
                      bool error_if_nonfinite, std::source_location place) {
  check_defined("get_total_norm", tensors, place);
  return norm_of(lists_by_dtype(tensors, "tensors"), norm_type,
                 error_if_nonfinite, place);
}

void clip_grads_with_norm_(const std::vector<Tensor>& parameters,
                           const Scalar& max_norm, const Scalar& total_norm,
                           std::source_location place) {
  scale(gradients("clip_grads_with_norm_", parameters, place).written, max_norm,
        total_norm, place);
}

Scalar clip_grad_norm_(const std::vector<Tensor>& parameters,
                       const Scalar& max_norm, double norm_type,
                       bool error_if_nonfinite, std::source_location place) {
  const Gradients grads = gradients("clip_grad_norm_", parameters, place);
  Scalar norm = norm_of(grads.read, norm_type, error_if_nonfinite, place);
  scale(grads.written, max_norm, norm, place);
  return norm;
}

void clip_grad_value_(const std::vector<Tensor>& parameters,
                      const Scalar& clip_value, std::source_location place) {
  const Scalar least = Scalar(0.0, place) - clip_value;
  for (const TensorList& list :
       gradients("clip_grad_value_", parameters, place).written) {
    foreach_clamp_(list, least, clip_value, place);
  }
}

}  // namespace fuse
