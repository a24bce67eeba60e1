#include "fusebook/trace/scalar.h"

#include <doctest/doctest.h>

#include <string>

#include "fusebook/compile/compile.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/support/error.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;

TEST_CASE("a scalar is a number or a 0-d tensor") {
  const Scalar number = 0.1;
  CHECK_FALSE(number.is_tensor());
  CHECK(number.value() == 0.1);
  const Scalar single = tensor(0.1);
  CHECK(single.is_tensor());
  CHECK(single.value() == double(0.1F));
  CHECK(Scalar(tensor(0.1, DType::float64)).value() == 0.1);
}

TEST_CASE("anything else is refused") {
  const auto refused = [](const Tensor& tensor) {
    return testing::message_of<Error>([&] { const Scalar scalar(tensor); });
  };
  const std::string start = "expected a number or a 0-d tensor, got ";
  CHECK(refused(zeros({2, 3}))
            .starts_with(start + "a tensor of shape [2, 3], "
                                 "at "));
  CHECK(refused(zeros({1})).starts_with(start + "a tensor of shape [1], at "));
  CHECK(refused(Tensor()).starts_with(start + "an undefined tensor, at "));
  CHECK(testing::contains(refused(zeros({1})), "scalar_test.cpp:"));
}

TEST_CASE("assigning writes into a tensor, so that every holder sees it") {
  Tensor rate = tensor(1);
  Scalar scalar = rate;
  const Scalar copy = scalar;
  scalar.assign(0.5);
  CHECK(rate.item() == 0.5);
  CHECK(copy.value() == 0.5);
  CHECK(scalar.tensor().raw_data() == rate.raw_data());
  rate.fill_(0.25);
  CHECK(scalar.value() == 0.25);

  Scalar number = 1.0;
  const Scalar old = number;
  number.assign(2.0);
  CHECK(number.value() == 2);
  CHECK(old.value() == 1);
}

TEST_CASE("arithmetic is in float64, whatever the storage") {
  const Scalar a = tensor(0.1);
  const Scalar b = 0.2;
  const double x = double(0.1F);
  CHECK((a + b).value() == x + 0.2);
  CHECK((a - b).value() == x - 0.2);
  CHECK((a * b).value() == x * 0.2);
  CHECK((a / b).value() == x / 0.2);
  CHECK((1.0 - b).value() == 1.0 - 0.2);
  CHECK_FALSE((a + b).is_tensor());
  CHECK_FALSE((a + b).is_recorded());
}

TEST_CASE("arithmetic inside a compiled function has the same value") {
  const auto list = make_params({{1}}, 1, DType::float64);
  Tensor rate = tensor(0.1);
  double factor = 0.3;
  auto step = compile([&] {
    const Scalar product = Scalar(rate) * factor;
    CHECK(product.is_recorded());
    CHECK(product.value() == rate.item() * factor);
    foreach_fill_(list, 1.0 - product);
  });
  step();
  CHECK(list[0].item() == 1.0 - rate.item() * 0.3);
  rate.fill_(0.7);  // a tensor is never guarded
  step();
  CHECK(list[0].item() == 1.0 - rate.item() * 0.3);
  CHECK(step.counters().compilations == 1);
  factor = 0.6;
  step();
  factor = 0.9;
  step();
  CHECK(list[0].item() == 1.0 - rate.item() * 0.9);
  CHECK(step.counters().compilations == 2);
}

TEST_CASE("numbers round to the elements' dtype where they meet them") {
  const auto list = make_params({{1}}, 1);
  const Scalar third = Scalar(1.0) / Scalar(3.0);
  foreach_fill_(list, third * 3e-8);
  CHECK(list[0].item() == double(float(1.0 / 3.0 * 3e-8)));
}

TEST_CASE("a scalar remembers where it was written") {
  const Scalar here = 1.0;
  CHECK(here.origin().place.line() == __LINE__ - 1);
  CHECK(here.origin().name == nullptr);
  Scalar named = 1.0;
  named.set_origin({.name = "lr", .group = 2, .place = {}});
  CHECK(to_string(named.origin()) == "param_groups[2][\"lr\"]");
}

TEST_CASE("scalars print as torch prints them") {
  CHECK(to_string(Scalar(0.01)) == "0.01");
  CHECK(to_string(Scalar(0.010000000000000002)) == "0.010000000000000002");
  CHECK(to_string(Scalar(tensor(0.0046666666666))) == "tensor(0.0047)");
}
