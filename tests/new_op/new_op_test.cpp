// The library of this test has one more line in its table of operations. The
// operation must then be everywhere, without any other change.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/foreach/foreach_map.h"
#include "support/testing.h"

using namespace fuse;

namespace {

using V = std::vector<double>;

const V legs = {3, 5, 8};
const V others = {4, 12, 15};
const V hypotenuses = {5, 13, 17};

struct Lists {
  explicit Lists(DType dtype)
      : a({tensor(legs, dtype)}, "a"), b({tensor(others, dtype)}, "b") {}
  TensorList a;
  TensorList b;
};

}  // namespace

TEST_CASE("the table has the new line") {
  const OpInfo& row = info(OpCode::hypotenuse);
  CHECK(row.name == "hypotenuse");
  CHECK(row.arity == 2);
  CHECK(op_table().back().name == "hypotenuse");
}

TEST_CASE("eager, new lists and in place, in both dtypes") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Lists x(dtype);
    CHECK(foreach_hypotenuse(x.a, x.b)[0].to_vector() == hypotenuses);
    foreach_hypotenuse_(x.a, x.b);
    CHECK(x.a[0].to_vector() == hypotenuses);
  }
}

TEST_CASE("compiled and interpreted") {
  for (const Backend backend : {Backend::compiled, Backend::interpreted}) {
    const Lists x(DType::float32);
    auto step =
        compile([&] { foreach_hypotenuse_(x.a, x.b); }, {.backend = backend});
    step();
    assert_fused(step);
    CHECK(x.a[0].to_vector() == hypotenuses);
    CHECK(testing::contains(step.output_code(), "hypotenuse<float>(a, b)"));
    CHECK(testing::contains(step.summary(), "once per element:  hypotenuse\n"));
  }
}

TEST_CASE("in foreach_map, over elements and over numbers") {
  const Lists x(DType::float64);
  const auto f = [](auto a, auto b, auto c) {
    return hypotenuse(a, b) * hypotenuse(c, 4.0);
  };
  const V wanted = {25, 65, 85};
  CHECK(foreach_map(f, x.a, x.b, 3.0)[0].to_vector() == wanted);
  auto step = compile([&] { foreach_map_(f, x.a, x.b, 3.0); });
  step();
  assert_fused(step);
  CHECK(x.a[0].to_vector() == wanted);
}
