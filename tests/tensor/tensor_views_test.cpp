#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "fusebook/checkpoint/safetensors.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/random.h"
#include "fusebook/tensor/tensor.h"
#include "fusebook/tensor/tensor_layout.h"
#include "support/strided_testing.h"
#include "support/testing.h"

using namespace fuse;
using testing::contains;
using testing::Lie;
using testing::Placement;
using testing::Random;

namespace {

// 0, 1, 2, ... in row-major order.
Tensor counting(const Shape& shape, DType dtype = DType::float32) {
  Tensor result = empty(shape, dtype);
  std::vector<double> values;
  for (std::int64_t i = 0; i < result.numel(); ++i) values.push_back(double(i));
  result.copy_(tensor(values, dtype).view(shape));
  return result;
}

// Elements from the first one of `base` to the first one of `view`.
std::int64_t offset(const Tensor& base, const Tensor& view) {
  return (static_cast<const char*>(view.raw_data()) -
          static_cast<const char*>(base.raw_data())) /
         std::int64_t(size_of(base.dtype()));
}

void check_view(const Tensor& base, const Tensor& view, std::int64_t first,
                const Shape& shape, const Shape& strides,
                const std::vector<double>& values) {
  CHECK(offset(base, view) == first);
  CHECK(view.shape() == shape);
  CHECK(view.strides() == strides);
  CHECK(view.to_vector() == values);
  CHECK(view.numel() == std::int64_t(values.size()));
  CHECK(view.impl()->storage == base.impl()->storage);
}

template <class Function>
std::string error_of(Function function) {
  return testing::message_of<Error>(function);
}

}  // namespace

TEST_CASE("views of a matrix") {
  const Tensor m = counting({3, 4});
  CHECK(m.strides() == Shape{4, 1});
  CHECK(m.is_contiguous());
  const std::vector<double> turned = {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11};
  check_view(m, m.t(), 0, {4, 3}, {1, 4}, turned);
  check_view(m, m.transpose(0, 1), 0, {4, 3}, {1, 4}, turned);
  check_view(m, m.transpose(-1, 0), 0, {4, 3}, {1, 4}, turned);
  check_view(m, m.permute({1, 0}), 0, {4, 3}, {1, 4}, turned);
  check_view(m, m.narrow(1, 1, 2), 1, {3, 2}, {4, 1}, {1, 2, 5, 6, 9, 10});
  check_view(m, m.narrow(0, -2, 2), 4, {2, 4}, {4, 1},
             {4, 5, 6, 7, 8, 9, 10, 11});
  check_view(m, m.select(0, 1), 4, {4}, {1}, {4, 5, 6, 7});
  check_view(m, m.select(-1, -1), 3, {3}, {4}, {3, 7, 11});
  check_view(m, m.slice(1, 0, 4, 2), 0, {3, 2}, {4, 2}, {0, 2, 4, 6, 8, 10});
  check_view(m, m.slice(1, 1, 4, 2), 1, {3, 2}, {4, 2}, {1, 3, 5, 7, 9, 11});
  check_view(m, m.slice(1, 0, 4, 3), 0, {3, 2}, {4, 3}, {0, 3, 4, 7, 8, 11});
  check_view(m, m.slice(0, -2, -1), 4, {1, 4}, {4, 1}, {4, 5, 6, 7});
  check_view(m, m.slice(0, 1, 99, 99), 4, {1, 4}, {12, 1}, {4, 5, 6, 7});
  check_view(m, m.view({2, 6}), 0, {2, 6}, {6, 1}, m.to_vector());
  check_view(m, m.view({-1}), 0, {12}, {1}, m.to_vector());
  check_view(m, m.view({2, -1, 3}), 0, {2, 2, 3}, {6, 3, 1}, m.to_vector());
  check_view(m, m.select(0, 1).expand({2, -1}), 4, {2, 4}, {0, 1},
             {4, 5, 6, 7, 4, 5, 6, 7});
  // A view of a view.
  check_view(m, m.t().slice(0, 1, 4, 2).select(1, 2), 9, {2}, {2}, {9, 11});
}

TEST_CASE("views of more and of fewer dimensions") {
  const Tensor block = counting({2, 3, 4, 5, 2});
  const Tensor turned = block.permute({4, -4, 0, 3, 2});
  CHECK(turned.shape() == Shape{2, 3, 2, 5, 4});
  CHECK(turned.strides() == Shape{1, 40, 120, 2, 10});
  std::vector<double> expected;
  for (int a = 0; a < 2; ++a)
    for (int b = 0; b < 3; ++b)
      for (int c = 0; c < 2; ++c)
        for (int d = 0; d < 5; ++d)
          for (int e = 0; e < 4; ++e)
            expected.push_back((((c * 3 + b) * 4 + e) * 5 + d) * 2 + a);
  CHECK(turned.to_vector() == expected);

  const Tensor number = tensor(3.0);
  CHECK(number.strides().empty());
  CHECK(number.is_contiguous());
  CHECK(number.t().item() == 3);
  CHECK(number.transpose(0, -1).item() == 3);
  CHECK(number.permute({}).item() == 3);
  CHECK(number.view({1, 1}).shape() == Shape{1, 1});
  CHECK(number.expand({3}).to_vector() == std::vector<double>{3, 3, 3});
  CHECK(counting({4}).t().shape() == Shape{4});
  CHECK(counting({4}).select(0, 2).item() == 2);

  const Tensor empty_one = empty({3, 0});
  CHECK(empty_one.t().shape() == Shape{0, 3});
  CHECK(empty_one.t().is_contiguous());
  CHECK(empty_one.narrow(0, 3, 0).numel() == 0);
  CHECK(counting({4}).slice(0, 3, 1).numel() == 0);
  CHECK(empty_one.view({0, 7}).shape() == Shape{0, 7});
}

TEST_CASE("contiguous in spite of dimensions of size 1") {
  const Tensor m = counting({4, 5});
  CHECK(m.narrow(0, 1, 1).is_contiguous());
  CHECK(m.narrow(0, 1, 2).is_contiguous());
  CHECK_FALSE(m.narrow(1, 0, 4).is_contiguous());
  CHECK_FALSE(m.t().is_contiguous());
  CHECK(m.narrow(1, 2, 1).narrow(0, 1, 1).is_contiguous());
  CHECK(m.view({4, 1, 5}).transpose(0, 1).is_contiguous());
}

TEST_CASE("what lies outside is one error that names it") {
  const Tensor m = counting({3, 4});
  CHECK(error_of([&] { m.transpose(0, 2); }) ==
        "transpose: dimension 2 is out of range; use -2 to 1 (the tensor has "
        "shape [3, 4])");
  CHECK(contains(error_of([&] { m.select(-3, 0); }),
                 "dimension -3 is out of range"));
  CHECK(
      contains(error_of([&] { m.select(0, 3); }),
               "select: index 3 is out of range for dimension 0 (the tensor"));
  CHECK(
      contains(error_of([&] { m.select(0, -4); }), "index -4 is out of range"));
  CHECK(contains(
      error_of([&] { m.narrow(0, 1, 3); }),
      "narrow: 3 elements from index 1 on do not fit into dimension 0"));
  CHECK(contains(error_of([&] { m.narrow(0, -4, 1); }), "do not fit"));
  CHECK(contains(error_of([&] { m.narrow(0, 4, 0); }), "do not fit"));
  CHECK(contains(error_of([&] { m.narrow(0, 0, -1); }), "do not fit"));
  CHECK(contains(error_of([&] { m.slice(0, 0, 3, 0); }), "positive, not 0"));
  CHECK(contains(error_of([&] { m.permute({0}); }), "[0] does not name"));
  CHECK(contains(error_of([&] { m.permute({0, -2}); }), "does not name"));
  CHECK(contains(error_of([&] { m.permute({0, 5}); }),
                 "dimension 5 is out of range"));
  CHECK(contains(error_of([&] { counting({2, 2, 2}).t(); }),
                 "t: expected at most 2"));
  CHECK(contains(error_of([&] { m.t().view({12}); }),
                 "view: strides [1, 4] do not allow another shape; call "
                 "contiguous() first"));
  CHECK(contains(error_of([&] { m.view({5, -1}); }), "the 12 elements"));
  CHECK(contains(error_of([&] { m.view({-1, -1}); }), "a single -1"));
  CHECK(contains(error_of([&] { m.view({0, -1}); }), "the 12 elements"));
  CHECK(contains(
      error_of([&] { m.view({std::int64_t(1) << 40, std::int64_t(1) << 40}); }),
      "the 12 elements"));
  CHECK(contains(error_of([&] { m.expand({4}); }), "too few dimensions"));
  CHECK(contains(error_of([&] { m.expand({6, 4}); }), "other than 1"));
  CHECK(contains(error_of([&] { m.expand({-1, 3, 4}); }), "negative"));
  CHECK(contains(error_of([&] { tensor(1.0).select(0, 0); }),
                 "dimension 0 is out of range; there are none"));
}

TEST_CASE("copies go from anywhere to anywhere, as plain loops do") {
  Random random(5);
  for (int round = 0; round < 300; ++round) {
    const Shape shape = testing::any_shape(random.below(60), random);
    const auto dtype = [&] {
      return random.chance(0.5) ? DType::float32 : DType::float64;
    };
    const Placement to(shape, Lie(random.below(4)), random);
    const Placement from(shape, Lie(random.below(4)), random);
    const Tensor to_block = counting({std::int64_t(to.room())}, dtype());
    const Tensor from_block = counting({std::int64_t(from.room())}, dtype());
    Tensor target = to.tensor(to_block.raw_data(), to_block.dtype());
    const Tensor source =
        from.tensor(from_block.raw_data(), from_block.dtype());
    const std::vector<double> before = from_block.to_vector();
    std::vector<double> expected = to_block.to_vector();
    std::vector<double> values;
    for (std::size_t i = 0; i < std::size_t(source.numel()); ++i) {
      values.push_back(before[from.at(i)]);
      expected[to.at(i)] = values[i];
    }
    REQUIRE(source.to_vector() == values);
    target.copy_(source);
    REQUIRE(to_block.to_vector() == expected);
    REQUIRE(from_block.to_vector() == before);
    target.fill_(-1);
    for (std::size_t i = 0; i < values.size(); ++i) expected[to.at(i)] = -1;
    REQUIRE(to_block.to_vector() == expected);

    const Tensor cloned = source.clone();
    REQUIRE(cloned.to_vector() == values);
    REQUIRE(cloned.impl()->storage != source.impl()->storage);
    const Tensor plain = source.contiguous();
    REQUIRE(plain.is_contiguous());
    REQUIRE(bitwise_equal(plain, source));
    REQUIRE(source.sum().item() == plain.sum().item());
    REQUIRE(to_string(source) == to_string(plain));
    REQUIRE(allclose(source, plain));
  }
}

TEST_CASE("copying within one tensor") {
  Tensor m = counting({3, 3});
  m.copy_(m.t());  // the source is read before anything is stored
  CHECK(m.to_vector() == std::vector<double>{0, 3, 6, 1, 4, 7, 2, 5, 8});
  Tensor row = counting({6});
  row.narrow(0, 1, 4).copy_(row.narrow(0, 0, 4));
  CHECK(row.to_vector() == std::vector<double>{0, 0, 1, 2, 3, 5});
  Tensor twos = counting({6});
  twos.slice(0, 0, 6, 2).copy_(twos.slice(0, 1, 6, 2));
  CHECK(twos.to_vector() == std::vector<double>{1, 1, 3, 3, 5, 5});
}

TEST_CASE("new tensors keep a dense order, and only that") {
  const Tensor block = counting({2, 3, 4});
  const Tensor turned = block.permute({2, 0, 1});
  for (const Tensor& made :
       {turned.clone(), zeros_like(turned), empty_like(turned),
        empty_like(turned, DType::float64)}) {
    CHECK(made.shape() == Shape{4, 2, 3});
    CHECK(made.strides() == Shape{1, 12, 4});
  }
  CHECK(turned.clone().to_vector() == turned.to_vector());
  const Tensor part = turned.slice(0, 0, 4, 2);
  for (const Tensor& made : {part.clone(), zeros_like(part)}) {
    CHECK(made.strides() == Shape{6, 3, 1});
  }
  CHECK(zeros_like(part).to_vector() == std::vector<double>(12, 0));
  CHECK(zeros_like(turned).to_vector() == std::vector<double>(24, 0));
  CHECK(part.clone().to_vector() == part.to_vector());
  CHECK(block.select(0, 0).expand({2, 3, 4}).clone().strides() ==
        Shape{12, 4, 1});
}

TEST_CASE("elements that share memory are read, never stored to") {
  Tensor row = counting({1, 3});
  Tensor wide = row.expand({2, 3});
  CHECK(wide.sum().item() == 6);
  CHECK(wide.to_vector() == std::vector<double>{0, 1, 2, 0, 1, 2});
  CHECK(contains(error_of([&] { wide.fill_(1); }),
                 "fill_: several elements of the tensor of shape [2, 3] and "
                 "strides [0, 1] share memory"));
  CHECK(contains(error_of([&] { wide.copy_(zeros({2, 3})); }), "copy_: "));
  CHECK(row.to_vector() == std::vector<double>{0, 1, 2});
  row.expand({1, 3}).fill_(5);
  CHECK(row.to_vector() == std::vector<double>{5, 5, 5});
}

TEST_CASE("the first element, one element, gradients and random numbers") {
  Tensor m = counting({3, 4});
  CHECK(m.narrow(1, 2, 2).data<float>() == m.data<float>() + 2);
  CHECK(m.select(0, 2).select(0, 3).item() == 11);
  CHECK(m.slice(1, 1, 2).slice(0, 2, 3).item() == 9);
  Tensor param = zeros({4, 3});
  param.set_grad(m.t());
  CHECK(param.grad().strides() == Shape{1, 4});

  Generator generator(1);
  Generator same(1);
  uniform_(m.slice(1, 0, 4, 2), 0, 1, generator);
  const Tensor drawn = empty({3, 2});
  uniform_(drawn, 0, 1, same);
  CHECK(bitwise_equal(m.slice(1, 0, 4, 2), drawn));
  CHECK(m.slice(1, 1, 4, 2).to_vector() ==
        std::vector<double>{1, 3, 5, 7, 9, 11});
}

TEST_CASE("which tensors share bytes") {
  const Tensor m = counting({4, 6});
  const auto share = [](const Tensor& a, const Tensor& b) {
    return share_bytes(*a.impl(), *b.impl());
  };
  CHECK_FALSE(share(m.slice(1, 0, 6, 2), m.slice(1, 1, 6, 2)));
  CHECK_FALSE(share(m.narrow(1, 0, 3), m.narrow(1, 3, 3)));
  CHECK(share(m.narrow(1, 0, 3), m.narrow(1, 2, 3)));
  CHECK(share(m.t(), m.select(1, 5)));
  CHECK_FALSE(share(m, m.clone()));
  CHECK_FALSE(share(m.narrow(0, 0, 0), m));
  CHECK(extent_bytes(*m.slice(1, 1, 6, 2).impl()) == (3 * 6 + 4 + 1) * 4);
}

TEST_CASE("views of nothing, and views of too much, are errors") {
  const Tensor none;
  const std::string undefined =
      "the tensor is undefined, like a gradient before backward() or after "
      "zero_grad(), or a state before the first step; check with defined()";
  CHECK(testing::message_of<Error>([&] { static_cast<void>(none.t()); }) ==
        "Tensor::t: " + undefined);
  CHECK(testing::message_of<Error>([&] {
          static_cast<void>(none.narrow(0, 0, 1));
        }) == "Tensor::narrow: " + undefined);
  const std::int64_t large = std::int64_t(1) << 40;
  CHECK(contains(testing::message_of<Error>([&] {
                   static_cast<void>(tensor(1.0).expand({large, large}));
                 }),
                 "exceeds 64 bits"));
  CHECK(tensor(1.0).expand({large, 0, large}).numel() == 0);
}
