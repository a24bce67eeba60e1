#include "fusebook/ir/with_operands.h"

#include <cstddef>

namespace fuse {

// Operands stand before what they go into.
std::vector<bool> with_operands(const Program& program,
                                std::vector<bool> values) {
  for (std::size_t id = values.size(); id-- > 0;) {
    if (!values[id]) continue;
    const Node& node = program.node(ValueId(id));
    for (int k = 0; k < node.arity; ++k) {
      values[std::size_t(node.in[k])] = true;
    }
  }
  return values;
}

}  // namespace fuse
