// Stores that a number may forbid: see SkipScope.
#include <array>

#include "fusebook/trace/recorder.h"
#include "fusebook/trace/skip_scope.h"

namespace fuse {

// Asking for a number may flush the recording, so it comes before an operation.
void Recorder::touch_skips() {
  const SkipScope* scope = SkipScope::current();
  for (; scope != nullptr; scope = scope->outer()) {
    const std::array skip = {&scope->skip()};
    static_cast<void>(touch(skip));
  }
}

// Negated twice, the number is 1 or 0: the smallest numbers of float64 would
// be 0 beside elements of float32.
ValueId Recorder::unless_skipped(const TensorList& target, ValueId value,
                                 std::source_location place) {
  const SkipScope* scope = SkipScope::current();
  for (; scope != nullptr; scope = scope->outer()) {
    const ValueId before = value_of(target, place);
    value = program_.convert_like(value, target.impl()->info(), before, place);
    const Operand& given = scope->skip();
    ValueId skip = given.is_list ? value_of(given.list, place)
                                 : value_of(given.scalar, place);
    for (int i = 0; i < 2; ++i) {
      skip = program_.apply(OpCode::logical_not, std::array{skip}, place);
    }
    value =
        program_.apply(OpCode::where, std::array{skip, before, value}, place);
  }
  return value;
}

}  // namespace fuse
