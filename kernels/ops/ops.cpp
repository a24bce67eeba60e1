#include "fusebook/ops/ops.h"

#include <array>

#include "fusebook/prelude/math.h"

namespace fuse {
namespace {

constexpr std::string_view library_functions[] = {
#define NAME(name) #name,
    FUSE_FUNCTIONS_1(NAME) FUSE_FUNCTIONS_2(NAME)
#undef NAME
};

// True when a formula has a "math::exp(" in it.
constexpr bool calls_library(std::string_view formula) {
  constexpr std::string_view room = "math::";
  for (auto at = formula.find(room); at != formula.npos;
       at = formula.find(room, at + 1)) {
    const std::string_view rest = formula.substr(at + room.size());
    const std::string_view called = rest.substr(0, rest.find('('));
    for (const std::string_view name : library_functions) {
      if (called == name) return true;
    }
  }
  return false;
}

constexpr std::array<OpInfo, op_count> table = {{
#define OP(name, arity, value, domain, ulp) \
  {#name, arity, #value, Domain::domain, ulp, calls_library(#value)},
#include "fusebook/ops/ops.def"
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
