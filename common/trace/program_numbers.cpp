#include "fusebook/trace/program_numbers.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "fusebook/device/read_number.h"
#include "fusebook/ir/with_operands.h"

namespace fuse {

namespace {

std::vector<bool> needed_for(const Program& program, ValueId value) {
  std::vector<bool> needed(std::size_t(value) + 1, false);
  needed.back() = true;
  return with_operands(program, std::move(needed));
}

Number leaf_of(const Program& program, const Node& node) {
  const auto leaf = std::size_t(node.in[0]);
  if (node.op == OpCode::load) {
    return {read_number(program.lists()[leaf], program.slots()[leaf]), nullptr};
  }
  return program.scalars()[leaf];
}

}  // namespace

// Each number once, whatever number of others it goes into.
Number number_of(const Program& program, ValueId value) {
  if (program.node(value).arity == 0) {
    return leaf_of(program, program.node(value));
  }
  const std::vector<bool> needed = needed_for(program, value);
  std::vector<Number> numbers(needed.size());
  for (std::size_t id = 0; id < needed.size(); ++id) {
    if (!needed[id]) continue;
    const Node& node = program.node(ValueId(id));
    if (node.arity == 0) {
      numbers[id] = leaf_of(program, node);
      continue;
    }
    std::array<Number, 4> in;
    for (std::size_t k = 0; k < node.arity; ++k) {
      in[k] = numbers[std::size_t(node.in[k])];
    }
    numbers[id] = apply_to_columns(node.op, std::span(in).first(node.arity));
  }
  return std::move(numbers.back());
}

bool needs_reduction(const Program& program, ValueId value) {
  if (program.reductions().empty()) return false;
  const std::vector<bool> needed = needed_for(program, value);
  const auto reductions = program.reductions();
  return std::any_of(reductions.begin(), reductions.end(), [&](ValueId each) {
    return std::size_t(each) < needed.size() && needed[std::size_t(each)];
  });
}

}  // namespace fuse
