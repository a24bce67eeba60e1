#include "fusebook/ops/ops.h"

#include <array>

namespace fuse {
namespace {

constexpr std::array<OpInfo, op_count> table = {{
#define ROW(name, arity, value, domain, ulp, kind, moves) \
  {#name, arity, #value, Domain::domain, ulp, OpKind::kind, moves},
#define OP(...) ROW(__VA_ARGS__, false)
#define MOVE(...) ROW(__VA_ARGS__, true)
#include "fusebook/ops/ops.def"
#undef OP
#undef ROW
}};

OpKind kind_of(OpCode op) {
  return int(op) < op_count ? info(op).kind : OpKind::plain;
}

}  // namespace

std::span<const OpInfo> op_table() { return table; }

bool is_arithmetic(OpCode op) {
  return kind_of(op) == OpKind::arithmetic || divides(op);
}

bool divides(OpCode op) { return kind_of(op) == OpKind::division; }

bool calls_library(OpCode op) { return kind_of(op) == OpKind::library; }

bool works_on_bits(OpCode op) { return kind_of(op) == OpKind::bits; }

bool is_move(OpCode op) { return int(op) < op_count && info(op).moves; }

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
    case OpCode::draw:
      return "draw";
    case OpCode::sum:
      return "sum";
    case OpCode::sum_of_squares:
      return "sum_of_squares";
    case OpCode::amax:
      return "amax";
    case OpCode::total_sum:
      return "total_sum";
    case OpCode::total_sum_of_squares:
      return "total_sum_of_squares";
    case OpCode::total_amax:
      return "total_amax";
    default:
      return info(op).name;
  }
}

}  // namespace fuse
