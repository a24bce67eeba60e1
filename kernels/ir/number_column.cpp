#include "fusebook/ir/number_column.h"

#include <algorithm>
#include <array>
#include <utility>

#include "fusebook/ops/loops.h"
#include "fusebook/support/same_bytes.h"

namespace fuse {
namespace {

double apply_in_group(OpCode op, std::span<const Number> in,
                      std::size_t group) {
  std::array<double, 4> values{};
  for (std::size_t k = 0; k < in.size(); ++k) {
    values[k] = in[k].is_single() ? in[k].value : in[k].column->values[group];
  }
  return apply_to_numbers(op, std::span(values).first(in.size()));
}

}  // namespace

bool Number::is(double wanted) const {
  return same_bits(value, wanted) && is_single();
}

Number apply_to_columns(OpCode op, std::span<const Number> in) {
  const auto column = std::find_if(
      in.begin(), in.end(), [](const Number& each) { return each.column; });
  if (column == in.end()) return {apply_in_group(op, in, 0), nullptr};
  auto result = std::make_shared<NumberColumn>();
  result->groups = column->column->groups;
  const bool single = std::all_of(in.begin(), in.end(), [](const Number& each) {
    return each.is_single();
  });
  const double first = apply_in_group(op, in, 0);
  result->values.assign(result->groups->numbers.size(), first);
  for (std::size_t g = 1; !single && g < result->values.size(); ++g) {
    result->values[g] = apply_in_group(op, in, g);
    result->same = result->same && same_bits(result->values[g], first);
  }
  return {first, std::move(result)};
}

}  // namespace fuse
