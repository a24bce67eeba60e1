#include "fusebook/tensor/tensor.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "fusebook/support/error.h"

using namespace fuse;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

struct Access {
  const void* data;
  bool write;
  bool operator==(const Access&) const = default;
};
std::vector<Access> accesses;

void remember_access(const TensorImpl& impl, bool write) {
  accesses.push_back({impl.data, write});
}

/// Installs the hook for a scope.
struct Watch {
  Watch() {
    accesses.clear();
    set_access_hook(remember_access);
  }
  ~Watch() { set_access_hook(nullptr); }
};

Tensor of_shape(const Shape& shape, const std::vector<double>& values) {
  Tensor result = empty(shape);
  for (std::size_t i = 0; i < values.size(); ++i) {
    result.data<float>()[i] = float(values[i]);
  }
  return result;
}

std::string message_of(void (*fails)()) {
  try {
    fails();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("making tensors") {
  CHECK(zeros({2, 3}).to_vector() == std::vector<double>(6, 0.0));
  CHECK(full({2}, 1.5, DType::float64).to_vector() ==
        std::vector<double>{1.5, 1.5});
  CHECK(tensor(0.5).dim() == 0);
  CHECK(tensor(0.5).numel() == 1);
  CHECK(tensor(0.5).item() == 0.5);
  CHECK(tensor({1.0, 2.0, 3.0}).shape() == Shape{3});
  CHECK(tensor({1.0}).shape() == Shape{1});
  CHECK(tensor(std::vector<double>{}).shape() == Shape{0});
  CHECK(empty({4, 0, 7}).numel() == 0);
  CHECK(empty({4, 0, 7}).nbytes() == 0);
  CHECK(empty({3, 5}, DType::float64).nbytes() == 120);
  const Tensor like = zeros_like(full({2, 2}, 3, DType::float64));
  CHECK(like.shape() == Shape{2, 2});
  CHECK(like.dtype() == DType::float64);
  CHECK(like.to_vector() == std::vector<double>(4, 0.0));
  // A float32 holds the nearest float, not the double.
  CHECK(tensor(0.1).item() == double(0.1F));
  CHECK(tensor(0.1, DType::float64).item() == 0.1);
}

TEST_CASE("impossible tensors") {
  CHECK_THROWS_WITH_AS(empty({2, -1}),
                       "invalid shape [2, -1]: sizes must not be negative",
                       Error);
  const std::int64_t big = std::int64_t(1) << 32;
  CHECK_THROWS_WITH_AS(empty({big, big}),
                       "invalid shape [4294967296, 4294967296]: the size in "
                       "bytes exceeds 64 bits",
                       Error);
  // The bytes overflow though the elements do not.
  CHECK_THROWS_AS(empty({std::int64_t(1) << 61}, DType::float64), Error);
  // An empty tensor is possible whatever its other sizes.
  CHECK(empty({big, big, 0}).numel() == 0);
}

TEST_CASE("handles share, clones do not") {
  Tensor a = tensor({1.0, 2.0});
  Tensor same = a;
  Tensor copy = a.clone();
  a.data<float>()[0] = 7;
  CHECK(same.to_vector() == std::vector<double>{7, 2});
  CHECK(copy.to_vector() == std::vector<double>{1, 2});
  CHECK(copy.raw_data() != a.raw_data());
}

TEST_CASE("typed access checks the dtype") {
  Tensor a = tensor(1.0);
  const Tensor b = tensor(1.0, DType::float64);
  CHECK_THROWS_WITH_AS(a.data<double>(),
                       "data<double>() was called on a tensor of dtype float32",
                       Error);
  CHECK_THROWS_WITH_AS(b.data<float>(),
                       "data<float>() was called on a tensor of dtype float64",
                       Error);
  CHECK_THROWS_WITH_AS(
      tensor({1.0, 2.0}).item(),
      "item() needs a tensor with one element; this one has shape [2]", Error);
  CHECK(full({1, 1}, 4).item() == 4);
}

TEST_CASE("copy_ converts and checks shapes") {
  Tensor target = zeros({2}, DType::float32);
  target.copy_(tensor({0.1, 1e300}, DType::float64));
  CHECK(target.to_vector()[0] == double(0.1F));
  CHECK(target.to_vector()[1] == infinity);
  Tensor wide = zeros({2}, DType::float64);
  wide.copy_(tensor({0.5, -0.0}));
  CHECK(std::signbit(wide.to_vector()[1]));
  CHECK_THROWS_WITH_AS(target.copy_(zeros({1, 2})),
                       "copy_: a tensor of shape [1, 2] cannot be copied into "
                       "one of shape [2]",
                       Error);
  CHECK_THROWS_AS(target.copy_(Tensor()), Error);
  Tensor matrix = zeros({2, 3});
  matrix.copy_(tensor({1.0, 2.0, 3.0}, DType::float64));
  CHECK(matrix.to_vector() == std::vector<double>{1, 2, 3, 1, 2, 3});
  matrix.copy_(tensor({4.0, 5.0}).view({2, 1}));
  CHECK(matrix.to_vector() == std::vector<double>{4, 4, 4, 5, 5, 5});
  matrix.copy_(tensor(6.0));
  CHECK(matrix.to_vector()[5] == 6);
  matrix.copy_(matrix.select(0, 1).narrow(0, 0, 1));
  CHECK(matrix.to_vector()[0] == 6);
  CHECK_THROWS_AS(matrix.copy_(zeros({2})), Error);
  empty({0}).copy_(empty({0}, DType::float64));
}

TEST_CASE("copy_ between overlapping memory") {
  std::vector<float> memory{1, 2, 3, 4, 5};
  Tensor low = from_blob(memory.data(), {4});
  Tensor high = from_blob(memory.data() + 1, {4});
  high.copy_(low);
  CHECK(memory == std::vector<float>{1, 1, 2, 3, 4});
  // Two doubles in the memory of the floats they are copied to.
  std::vector<double> doubles{1.5, 2.5, 3.5};
  Tensor floats = from_blob(doubles.data() + 1, {2});
  floats.copy_(from_blob(doubles.data(), {2}, DType::float64));
  CHECK(floats.to_vector() == std::vector<double>{1.5, 2.5});
}

TEST_CASE("memory at any address") {
  alignas(8) std::array<char, 64> bytes{};
  for (const DType dtype : {DType::float32, DType::float64}) {
    for (std::size_t offset = 0; offset < 8; ++offset) {
      Tensor odd = from_blob(bytes.data() + offset, {3}, dtype);
      odd.fill_(1.25);
      CHECK(odd.to_vector() == std::vector<double>(3, 1.25));
      odd.copy_(tensor({1.0, 2.0, 3.0}));
      CHECK(odd.sum().item() == 6);
      CHECK(odd.clone().to_vector() == std::vector<double>{1, 2, 3});
      CHECK(to_string(odd).substr(0, 20) ==
            "tensor([1., 2., 3.]" +
                std::string(dtype == DType::float32 ? ")" : ","));
    }
  }
  CHECK_THROWS_AS(from_blob(nullptr, {1}), Error);
  CHECK(from_blob(nullptr, {0}).numel() == 0);
}

TEST_CASE("scalars lie side by side and keep their storage alive") {
  std::vector<Tensor> all = scalars(3);
  REQUIRE(all.size() == 3);
  const char* first = static_cast<char*>(all[0].raw_data());
  CHECK(static_cast<char*>(all[1].raw_data()) == first + 8);
  CHECK(static_cast<char*>(all[2].raw_data()) == first + 16);
  Tensor last = all[2];
  CHECK(last.dim() == 0);
  CHECK(last.dtype() == DType::float64);
  all.clear();
  last.fill_(9);
  CHECK(last.item() == 9);
  CHECK(scalars(0).empty());
  CHECK(scalars(2, DType::float32)[1].dtype() == DType::float32);
}

TEST_CASE("gradients are checked and shared") {
  Tensor weight = zeros({2});
  CHECK_FALSE(weight.grad().defined());
  Tensor grad = tensor({1.0, 2.0});
  weight.set_grad(grad);
  grad.fill_(3);
  CHECK(weight.grad().to_vector() == std::vector<double>{3, 3});
  CHECK_THROWS_WITH_AS(weight.set_grad(zeros({3})),
                       "a gradient of shape [3] does not fit a tensor of "
                       "shape [2]",
                       Error);
  weight.set_grad(full({2}, 2, DType::float64));
  CHECK(weight.grad().dtype() == DType::float64);
  weight.set_grad(Tensor());
  CHECK_FALSE(weight.grad().defined());
}

TEST_CASE("sum") {
  CHECK(empty({0}).sum().item() == 0);
  CHECK(tensor({1.0, 2.0, 3.5}).sum().item() == 6.5);
  CHECK(tensor(3.0, DType::float64).sum().dtype() == DType::float64);
  // Whole numbers: exact in any order, so the oracle is a formula.
  for (const std::int64_t count : {1, 7, 8, 9, 16, 1000, 4095}) {
    Tensor numbers = empty({count});
    for (std::int64_t i = 0; i < count; ++i) {
      numbers.data<float>()[i] = float(i + 1);
    }
    CHECK(numbers.sum().item() == 0.5 * double(count * (count + 1)));
  }
}

TEST_CASE("backward needs something to go back to") {
  CHECK_THROWS_WITH_AS(zeros({2}).backward(),
                       "backward() starts from a 0-d tensor; this tensor "
                       "has shape [2]: call sum() first",
                       Error);
  CHECK_THROWS_WITH_AS(zeros({2}).sum().backward(),
                       "backward() needs a tensor that requires a gradient; "
                       "call it on the sum() of a model's output",
                       Error);
}

TEST_CASE("sum hands its gradient to every element") {
  const Tensor output = zeros({2, 3}, DType::float64).requires_grad_();
  output.sum().backward();
  CHECK(output.grad().shape() == Shape{2, 3});
  CHECK(output.grad().dtype() == DType::float64);
  CHECK(output.grad().to_vector() == std::vector<double>(6, 1.0));
}

TEST_CASE("the access hook sees every touch") {
  Tensor a = tensor({1.0, 2.0});
  Tensor b = tensor({3.0, 4.0});
  const Tensor& constant = a;
  const void* at_a = a.raw_data();
  const void* at_b = b.raw_data();
  const auto seen = [](auto touch) {
    const Watch watch;
    touch();
    return accesses;
  };
  using List = std::vector<Access>;
  CHECK(seen([&] { a.data<float>(); }) == List{{at_a, true}});
  CHECK(seen([&] { constant.data<float>(); }) == List{{at_a, false}});
  CHECK(seen([&] { (void)a.to_vector(); }) == List{{at_a, false}});
  CHECK(seen([&] { (void)a.clone(); }) == List{{at_a, false}});
  CHECK(seen([&] { (void)a.sum(); }) == List{{at_a, false}});
  CHECK(seen([&] { a.fill_(1); }) == List{{at_a, true}});
  CHECK(seen([&] { a.copy_(b); }) == List{{at_b, false}, {at_a, true}});
  CHECK(seen([&] { (void)a.raw_data(); }).empty());
  const Tensor one = tensor(1.0);
  CHECK(seen([&] { (void)one.item(); }) == List{{one.raw_data(), false}});
  CHECK(seen([&] { (void)to_string(one); }) == List{{one.raw_data(), false}});
  CHECK(seen([&] { (void)bitwise_equal(a, b); }) ==
        List{{at_a, false}, {at_b, false}});
  // Making tensors touches nothing that could be pending.
  CHECK(seen([] { (void)full({3}, 2.0); }).empty());
}

TEST_CASE("bitwise_equal") {
  CHECK(
      bitwise_equal(tensor({1.0, not_a_number}), tensor({1.0, -not_a_number})));
  CHECK_FALSE(bitwise_equal(tensor(0.0), tensor(-0.0)));
  CHECK_FALSE(bitwise_equal(tensor(1.0), tensor(std::nextafter(1.0F, 2.0F))));
  CHECK_FALSE(bitwise_equal(tensor(1.0), tensor(not_a_number)));
  CHECK_FALSE(bitwise_equal(tensor(1.0), tensor(1.0, DType::float64)));
  CHECK_FALSE(bitwise_equal(zeros({2, 1}), zeros({1, 2})));
  const Tensor denormal = tensor(std::numeric_limits<float>::denorm_min());
  CHECK(bitwise_equal(denormal, denormal.clone()));
  CHECK_FALSE(bitwise_equal(denormal, tensor(0.0)));
  using List = std::vector<Tensor>;
  CHECK(bitwise_equal(List{tensor(1.0)}, List{tensor(1.0)}));
  CHECK_FALSE(bitwise_equal(List{tensor(1.0)}, List{}));
  CHECK_FALSE(bitwise_equal(List{tensor(1.0)}, List{tensor(2.0)}));
}

TEST_CASE("allclose") {
  const auto close = [](double a, double b) {
    return allclose(tensor(a, DType::float64), tensor(b, DType::float64));
  };
  CHECK(close(1.0, 1.0 + 9e-6));
  CHECK_FALSE(close(1.0, 1.0 + 2e-5));
  CHECK(close(0.0, 9e-9));
  CHECK_FALSE(close(0.0, 2e-8));
  CHECK(close(infinity, infinity));
  CHECK_FALSE(close(infinity, -infinity));
  CHECK_FALSE(close(infinity, 1.0));
  CHECK_FALSE(close(1.0, infinity));
  CHECK_FALSE(close(not_a_number, not_a_number));
  CHECK(allclose(tensor(1.0), tensor(1.5), 0.5, 0.0));
  CHECK_THROWS_AS(allclose(zeros({1}), zeros({2})), Error);
  CHECK_THROWS_AS(allclose(tensor(1.0), tensor(1.0, DType::float64)), Error);
}

TEST_CASE("numbers print as torch prints them") {
  CHECK(to_string(tensor(0.004666666666666667)) == "tensor(0.0047)");
  CHECK(to_string(tensor(0.01)) == "tensor(0.0100)");
  CHECK(to_string(tensor(1.0)) == "tensor(1.)");
  CHECK(to_string(tensor(0.0)) == "tensor(0.)");
  CHECK(to_string(tensor(-2.5)) == "tensor(-2.5000)");
  CHECK(to_string(tensor(1e-8)) == "tensor(1.0000e-08)");
  CHECK(to_string(tensor(1024.0)) == "tensor(1024.)");
  CHECK(to_string(tensor(1.5e9)) == "tensor(1.5000e+09)");
  CHECK(to_string(tensor(not_a_number)) == "tensor(nan)");
  CHECK(to_string(tensor(-infinity)) == "tensor(-inf)");
  CHECK(to_string(tensor(0.01, DType::float64)) ==
        "tensor(0.0100, dtype=float64)");
  CHECK(to_string(Tensor()) == "tensor(undefined)");
}

TEST_CASE("rows print as torch prints them") {
  CHECK(to_string(tensor({1.0, 2.0})) == "tensor([1., 2.])");
  CHECK(to_string(tensor({1.0, -2.5})) == "tensor([ 1.0000, -2.5000])");
  CHECK(to_string(tensor({1.0, not_a_number, infinity})) ==
        "tensor([1., nan, inf])");
  CHECK(to_string(tensor({0.5, 1000.0})) == "tensor([5.0000e-01, 1.0000e+03])");
  CHECK(to_string(tensor({1.0, 1001.0})) == "tensor([1.0000e+00, 1.0010e+03])");
  CHECK(to_string(tensor({10.0, 200.0})) == "tensor([ 10., 200.])");
  CHECK(to_string(empty({0})) == "tensor([])");
  CHECK(to_string(empty({2, 0})) == "tensor([], size=(2, 0))");
  CHECK(to_string(empty({0}, DType::float64)) == "tensor([], dtype=float64)");
}

TEST_CASE("matrices and long tensors print as torch prints them") {
  CHECK(to_string(of_shape({2, 2}, {1, 2, 3, 4})) ==
        "tensor([[1., 2.],\n        [3., 4.]])");
  CHECK(to_string(of_shape({2, 1, 2}, {1, 2, 3, 4})) ==
        "tensor([[[1., 2.]],\n\n        [[3., 4.]]])");
  // Ten numbers of six characters fit behind "tensor(" in 80 columns: nine.
  CHECK(to_string(full({11}, 0.5)) ==
        "tensor([0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, "
        "0.5000, 0.5000,\n        0.5000, 0.5000])");
  Tensor numbers = empty({1001});
  for (int i = 0; i < 1001; ++i) numbers.data<float>()[i] = float(i % 10);
  CHECK(to_string(numbers) == "tensor([0., 1., 2.,  ..., 8., 9., 0.])");
  CHECK(to_string(zeros({8, 200})) ==
        "tensor([[0., 0., 0.,  ..., 0., 0., 0.],\n"
        "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "        ...,\n"
        "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "        [0., 0., 0.,  ..., 0., 0., 0.]])");
}

TEST_CASE("shapes print") {
  CHECK(to_string(Shape{}) == "[]");
  CHECK(to_string(Shape{1024, 1024}) == "[1024, 1024]");
}

TEST_CASE("memory that cannot be had") {
  const std::string message =
      message_of([] { (void)zeros({std::int64_t(1) << 50}); });
  CHECK(message.find("out of memory: 4503599627370496 bytes (4.5 PB)") == 0);
}
