#include "fusebook/tensor/autograd.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/device/device.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/nn/functional.h"
#include "fusebook/support/error.h"
#include "support/gradients.h"
#include "support/testing.h"

using namespace fuse;
using namespace testing;

namespace {

using Values = std::vector<double>;

Tensor leaf(std::initializer_list<double> values) {
  return tensor(values).requires_grad_();
}

}  // namespace

TEST_CASE("a leaf gets its gradient, other tensors none") {
  const Tensor a = leaf({1, 2});
  const Tensor b = tensor({3.0, 4.0});
  const Tensor product = mul(a, b);
  CHECK(product.requires_grad());
  CHECK(a.requires_grad());
  CHECK_FALSE(b.requires_grad());
  product.sum().backward();
  CHECK(a.grad().to_vector() == Values{3, 4});
  CHECK_FALSE(b.grad().defined());
  CHECK_FALSE(product.grad().defined());
  CHECK_FALSE(mul(b, b).requires_grad());
}

TEST_CASE("gradients add up where they are, and begin anew when removed") {
  Tensor a = leaf({1, 2});
  const auto pass = [&] { mul(a, a).sum().backward(); };
  pass();
  const void* const address = a.grad().raw_data();
  pass();
  CHECK(a.grad().raw_data() == address);
  CHECK(a.grad().to_vector() == Values{4, 8});
  a.set_grad({});
  pass();
  CHECK(a.grad().to_vector() == Values{2, 4});
}

TEST_CASE("a gradient is nobody else's memory") {
  const Tensor a = leaf({1, 2});
  const Tensor b = leaf({3, 4});
  add(a, b).sum().backward();
  CHECK(a.grad().raw_data() != b.grad().raw_data());
  a.grad().fill_(7);
  CHECK(b.grad().to_vector() == Values{1, 1});
  // In the order of the parameter, not in that of the product that made it.
  const Tensor matrix = signed_numbers({2, 3}).requires_grad_();
  matrix.t().contiguous().sum().backward();
  CHECK(matrix.grad().strides() == matrix.strides());
  const Tensor number = leaf({5});
  number.expand({4}).sum().backward();
  CHECK(number.grad().to_vector() == Values{4});
}

TEST_CASE("a tensor that is used twice is gone back through once") {
  const Tensor a = leaf({2, 3});
  int calls = 0;
  const Tensor seen =
      with_grad(a.detach(), {a}, [&](const Tensor& grad) -> Grads {
        ++calls;
        return {grad};
      });
  // a^2 + a^3, where the second needs the first as well.
  const Tensor square = mul(seen, seen);
  add(square, mul(square, seen)).sum().backward();
  CHECK(calls == 1);
  CHECK(a.grad().to_vector() == Values{2 * 2 + 3 * 4, 2 * 3 + 3 * 9});
  // Twice as many ways at each of many places, which nobody could walk singly.
  Tensor value = a;
  for (int i = 0; i < 60; ++i) value = add(value, value);
  Tensor(a).set_grad({});
  value.sum().backward();
  CHECK(a.grad().to_vector() == Values(2, double(std::uint64_t(1) << 60)));
}

TEST_CASE("backward may be called again, and adds again") {
  const Tensor a = leaf({2});
  const Tensor loss = mul(a, a).sum();
  loss.backward();
  loss.backward();
  CHECK(a.grad().to_vector() == Values{8});
}

TEST_CASE("a sum of sums, and a number that is a leaf itself") {
  const Tensor a = leaf({1, 2});
  add(a.sum(), mul(a, a).sum()).backward();
  CHECK(a.grad().to_vector() == Values{3, 5});
  const Tensor number = tensor(3.0).requires_grad_();
  number.backward();
  CHECK(number.grad().item() == 1);
}

TEST_CASE("views lead gradients back") {
  const Tensor x = signed_numbers({2, 3, 4});
  const auto check = [&](const std::function<Tensor(const Tensor&)>& view) {
    check_gradients([&](const auto& in) { return view(in[0]); }, {x});
  };
  check([](const Tensor& t) { return t.transpose(0, 2); });
  check([](const Tensor& t) { return t.permute({2, 0, 1}); });
  check([](const Tensor& t) { return t.permute({-2, -1, 0}); });
  check([](const Tensor& t) { return t.narrow(1, 1, 2); });
  check([](const Tensor& t) { return t.narrow(-1, -3, 2); });
  check([](const Tensor& t) { return t.select(1, -1); });
  check([](const Tensor& t) { return t.slice(2, 1, 4, 2); });
  check([](const Tensor& t) { return t.slice(0, 2, 2); });
  check([](const Tensor& t) { return t.view({4, -1}); });
  check([](const Tensor& t) {
    return t.transpose(0, 1).contiguous().view({6, 4});
  });
  check([](const Tensor& t) { return t.transpose(0, 1).clone(); });
  check([](const Tensor& t) { return t.select(0, 0).t(); });
  check([](const Tensor& t) { return t.select(0, 1).select(0, 2).t(); });
  check([](const Tensor& t) {
    return t.narrow(1, 2, 1).expand({5, 2, 3, 4}).transpose(0, 2);
  });
  check([](const Tensor& t) {
    return mul(t.select(0, 0), t.select(0, 1).t().contiguous().view({3, 4}));
  });
  const Tensor number = signed_numbers({});
  check_gradients(
      [](const auto& in) { return in[0].transpose(0, -1).expand({2, 3}); },
      {number});
}

TEST_CASE(
    "views of a gradient's way are right where strides are not those of rows") {
  const Tensor x = signed_numbers({3, 4});
  check_gradients(
      [](const auto& in) {
        const Tensor turned = in[0].t();
        return add(turned.narrow(0, 1, 2), turned.slice(0, 0, 4, 2));
      },
      {x});
}

TEST_CASE("copies in another dtype, or on another device, lead back") {
  const Tensor a = leaf({1, 2});
  const Tensor wide = a.to(DType::float64);
  mul(wide, wide).sum().backward();
  CHECK(a.grad().dtype() == DType::float32);
  CHECK(a.grad().to_vector() == Values{2, 4});
  const Tensor b = leaf({1, 2});
  const Tensor there = b.to(parse_device("cuda-sim"));
  mul(there, there).sum().backward();
  CHECK(b.grad().device().is_cpu());
  CHECK(b.grad().to_vector() == Values{2, 4});
}

TEST_CASE("nothing goes back through detach, or without ways back") {
  const Tensor a = leaf({1, 2});
  const Tensor cut = a.detach();
  CHECK(cut.raw_data() == a.raw_data());
  CHECK_FALSE(cut.requires_grad());
  mul(a, cut).sum().backward();
  CHECK(a.grad().to_vector() == Values{1, 2});
  {
    const NoGradGuard guard;
    CHECK_FALSE(mul(a, a).requires_grad());
    CHECK_FALSE(a.view({2, 1}).requires_grad());
    {
      const NoGradGuard again;
    }
    CHECK_FALSE(a.sum().requires_grad());
    CHECK(a.requires_grad());
  }
  CHECK(mul(a, a).requires_grad());
}

TEST_CASE("a frozen tensor gets no gradient") {
  const Tensor a = leaf({1, 2});
  const Tensor b = leaf({3, 4});
  const Tensor product = mul(a, b);
  b.requires_grad_(false);
  mul(a, b).sum().backward();
  CHECK_FALSE(b.grad().defined());
  CHECK(a.grad().defined());
  CHECK(contains(message_of<Error>([&] { product.requires_grad_(false); }),
                 "requires_grad_: this tensor was computed from others"));
}

TEST_CASE("what was recorded comes first") {
  const Tensor a = leaf({1, 2});
  mul(a, a).sum().backward();
  auto step = compile([&] {
    foreach_mul_({a}, 3.0);  // pending when the product reads it
    const Tensor product = mul(a, a);
    foreach_zero_({a.grad()});  // pending when backward adds to it
    product.sum().backward();
  });
  step();
  CHECK(a.grad().to_vector() == Values{6, 12});
  CHECK(step.counters().graph_breaks == 2);
}

TEST_CASE("an operation of one's own") {
  const Tensor a = leaf({1, 2});
  const auto twice = [](const Tensor& input) {
    const Tensor result = add(input.detach(), input.detach());
    return with_grad(result, {input}, [](const Tensor& grad) -> Grads {
      return {add(grad, grad)};
    });
  };
  twice(twice(a)).sum().backward();
  CHECK(a.grad().to_vector() == Values{4, 4});
  const Tensor wrong =
      with_grad(a.detach(), {a}, [](const Tensor&) -> Grads { return {}; });
  CHECK(message_of<Error>([&] { wrong.sum().backward(); }) ==
        "a backward function returned 0 gradients for 1 inputs");
  const Tensor none = with_grad(
      a.detach(), {a}, [](const Tensor&) -> Grads { return {Tensor()}; });
  Tensor(a).set_grad({});
  none.sum().backward();
  CHECK_FALSE(a.grad().defined());
}

TEST_CASE("a long chain needs no deep call stack, however it goes") {
  const Tensor a = leaf({1});
  Tensor value = a;
  for (int i = 0; i < 200000; ++i) value = value.view({1});
  Tensor loss = value.sum();
  loss.backward();
  CHECK(a.grad().to_vector() == Values{1});
  value = Tensor();
  loss = Tensor();
}

TEST_CASE("what a graph keeps goes with its last tensor") {
  const Tensor a = leaf({1, 2});
  Tensor product = mul(a, a);
  const std::weak_ptr<GradFn> node = product.impl()->grad_fn;
  product.sum().backward();
  CHECK_FALSE(node.expired());
  product = Tensor();
  CHECK(node.expired());
  CHECK(a.impl().use_count() == 1);
}
