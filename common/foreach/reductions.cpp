#include "fusebook/foreach/reductions.h"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "fusebook/foreach/eager.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/support/call_place.h"
#include "fusebook/support/error.h"
#include "fusebook/support/number_text.h"
#include "fusebook/support/source_place.h"

namespace fuse {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

constexpr std::array square_root = {OpCode::sqrt};
constexpr std::array magnitude = {OpCode::abs};
constexpr std::array not_finite = {OpCode::isfinite, OpCode::logical_not};
constexpr std::array none_of = {OpCode::logical_not};

constexpr Reduction sum_of = {{}, OpCode::sum, {}};
constexpr Reduction largest = {{}, OpCode::amax, {}};
constexpr Reduction norm_1 = {magnitude, OpCode::sum, {}};
constexpr Reduction norm_2 = {{}, OpCode::sum_of_squares, square_root};
constexpr Reduction norm_infinity = {magnitude, OpCode::amax, {}};
constexpr Reduction are_finite = {not_finite, OpCode::sum, none_of};

std::string call(const char* name, std::source_location place) {
  return fmt::format("{} at {}", name, at(CallPlace::or_else(place)));
}

void check_elements(const char* name, const TensorList& list,
                    std::source_location place) {
  if (!list.defined()) {
    throw Error(call(name, place) + ": the list was moved from");
  }
  if (list.impl()->rate == Rate::element) return;
  throw Error(call(name, place) +
              " takes a list of tensors, not of per-tensor numbers");
}

void check_not_empty(const char* name, const TensorList& list,
                     std::source_location place) {
  const ListImpl& shapes = shapes_of(*list.impl());
  for (std::size_t i = 0; i < shapes.numels.size(); ++i) {
    if (shapes.numels[i] > 0) continue;
    throw Error(fmt::format(
        "{}: tensor {} has no elements, and the largest of none is not defined",
        call(name, place), i));
  }
}

void check_order(const char* name, double ord, std::source_location place) {
  if (ord > 0) return;
  throw Error(
      fmt::format("{}: the norm of order {} is not supported; use 1, 2, "
                  "infinity or another "
                  "positive order",
                  call(name, place), number_text(ord)));
}

// That of an order without powers.
const Reduction* find_norm(double ord) {
  if (ord == 2) return &norm_2;
  if (ord == 1) return &norm_1;
  return ord == infinity ? &norm_infinity : nullptr;
}

void check_norm(const char* name, const TensorList& list, double ord,
                std::source_location place) {
  check_elements(name, list, place);
  check_order(name, ord, place);
  if (ord == infinity) check_not_empty(name, list, place);
}

// The magnitude of the least int16 is beyond int16.
TensorList widened(const TensorList& list, std::source_location place) {
  if (list.impl()->dtype != DType::int16) return list;
  return foreach_to(list, DType::float32, place);
}

TensorList powers(const TensorList& list, double ord,
                  std::source_location place) {
  const TensorList wide = foreach_to(list, DType::float64, place);
  return foreach_pow(foreach_abs(wide, place), ord, place);
}

TensorList reduce(const Reduction& what, const TensorList& list,
                  std::source_location place) {
  if (list.empty()) return TensorList::per_tensor({});
  return record_or_run(
      [&](Recorder& recorder) { return recorder.reduce(what, list, place); });
}

Scalar total(const Reduction& what, const TensorList& list, double of_none,
             std::source_location place) {
  if (list.empty()) return {of_none, place};
  return record_or_run(
      [&](Recorder& recorder) { return recorder.total(what, list, place); });
}

}  // namespace

TensorList foreach_norm(const TensorList& list, double ord,
                        std::source_location place) {
  refuse_in_map("norm", place);
  check_norm("foreach_norm", list, ord, place);
  const Reduction* const norm = find_norm(ord);
  if (norm != nullptr) return reduce(*norm, widened(list, place), place);
  return foreach_pow(reduce(sum_of, powers(list, ord, place), place), 1 / ord,
                     place);
}

TensorList foreach_sum(const TensorList& list, std::source_location place) {
  refuse_in_map("sum", place);
  check_elements("foreach_sum", list, place);
  return reduce(sum_of, list, place);
}

TensorList foreach_amax(const TensorList& list, std::source_location place) {
  refuse_in_map("amax", place);
  check_elements("foreach_amax", list, place);
  check_not_empty("foreach_amax", list, place);
  return reduce(largest, list, place);
}

Scalar total_norm(const TensorList& list, double ord,
                  std::source_location place) {
  refuse_in_map("norm", place);
  check_norm("total_norm", list, ord, place);
  const Reduction* const norm = find_norm(ord);
  if (norm != nullptr) return total(*norm, widened(list, place), 0, place);
  return scalar_op(OpCode::pow,
                   total(sum_of, powers(list, ord, place), 0, place),
                   Scalar(1 / ord, place));
}

Scalar all_finite(const TensorList& list, std::source_location place) {
  refuse_in_map("all_finite", place);
  check_elements("all_finite", list, place);
  return total(are_finite, list, 1, place);
}

}  // namespace fuse
