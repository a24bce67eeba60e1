#include "fusebook/trace/program_numbers.h"

#include <array>
#include <span>

#include "fusebook/device/read_number.h"

namespace fuse {

Number number_of(const Program& program, ValueId value) {
  const Node& node = program.node(value);
  const auto leaf = std::size_t(node.in[0]);
  if (node.op == OpCode::load) {
    return {read_number(program.lists()[leaf], program.slots()[leaf]), nullptr};
  }
  if (node.arity == 0) return program.scalars()[leaf];
  std::array<Number, 4> in;
  for (std::size_t k = 0; k < node.arity; ++k) {
    in[k] = number_of(program, node.in[k]);
  }
  return apply_to_columns(node.op, std::span(in).first(node.arity));
}

}  // namespace fuse
