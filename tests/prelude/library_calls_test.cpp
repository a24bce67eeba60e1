// Which operations call the C library: the table says it, and whoever runs them
// many elements at a time relies on it.
#include <doctest/doctest.h>

#include <cmath>

#include "fusebook/ops/ops.h"
#include "support/reference.h"

using fuse::OpCode;

namespace {

int called = 0;

// The host's functions, counted.
const fuse::Calls& counting_calls() {
  static const fuse::Calls calls = {
#define COUNTED(name, T, parameters, operands) \
  [] parameters -> T {                         \
    ++called;                                  \
    return std::name operands;                 \
  }
#define COUNTED_1(name)                               \
  .name##_f32 = COUNTED(name, float, (float a), (a)), \
  .name##_f64 = COUNTED(name, double, (double a), (a)),
#define COUNTED_2(name)                                           \
  .name##_f32 = COUNTED(name, float, (float a, float b), (a, b)), \
  .name##_f64 = COUNTED(name, double, (double a, double b), (a, b)),
      FUSE_FUNCTIONS_1(COUNTED_1) FUSE_FUNCTIONS_2(COUNTED_2)
#undef COUNTED
#undef COUNTED_1
#undef COUNTED_2
  };
  return calls;
}

class Counting {
 public:
  Counting() { fuse::device::calls = &counting_calls(); }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;
  ~Counting() { fuse::device::calls = &fuse::host_calls; }
};

}  // namespace

TEST_CASE("the table says which operations call the library") {
  const Counting counting;
  int callers = 0;
  for (int i = 0; i < fuse::op_count; ++i) {
    const auto op = OpCode(i);
    CAPTURE(fuse::info(op).name);
    for (const fuse::DType dtype :
         {fuse::DType::float32, fuse::DType::float64}) {
      called = 0;
      reference::apply(op, dtype, {0.75, 1.7, 0.4, 2.1});
      CHECK((called > 0) == fuse::calls_library(op));
    }
    callers += int(fuse::calls_library(op));
  }
  CHECK(callers > 20);
  CHECK(callers < fuse::op_count / 2);
  CHECK(fuse::calls_library(OpCode::remainder));
  CHECK_FALSE(fuse::calls_library(OpCode::sqrt));
}
