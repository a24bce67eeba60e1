#include "ops.h"

#include <array>

namespace fuse {
namespace {

constexpr std::array<OpInfo, op_count> table = {{
#define OP(name, arity, value, domain, ulp) \
  {#name, arity, #value, Domain::domain, ulp},
#include "ops.def"
#undef OP
}};

}  // namespace

std::span<const OpInfo> op_table() { return table; }

std::string_view name_of(OpCode op) {
  switch (op) {
    case OpCode::constant:
      return "constant";
    case OpCode::argument:
      return "argument";
    case OpCode::load:
      return "load";
    case OpCode::cast:
      return "cast";
    default:
      return info(op).name;
  }
}

}  // namespace fuse
