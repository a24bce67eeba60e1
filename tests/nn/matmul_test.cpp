#include "fusebook/nn/matmul.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/random.h"
#include "support/fake_cublas.h"
#include "support/testing.h"

using namespace fuse;
using namespace testing;

namespace {

std::vector<double> product_of(const Tensor& a, const Tensor& b) {
  std::vector<double> sums;
  for (std::int64_t i = 0; i < a.shape()[0]; ++i) {
    const std::vector<double> row = a.select(0, i).to_vector();
    for (std::int64_t j = 0; j < b.shape()[1]; ++j) {
      const std::vector<double> column = b.select(1, j).to_vector();
      double sum = 0;
      for (std::size_t l = 0; l < row.size(); ++l) sum += row[l] * column[l];
      sums.push_back(sum);
    }
  }
  return sums;
}

void check_close(const Tensor& tensor, const std::vector<double>& expected,
                 double bound) {
  const std::vector<double> values = tensor.to_vector();
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    CHECK(std::abs(values[i] - expected[i]) < bound);
  }
}

/// A 4 x 6 matrix of the same numbers, lying in many ways.
std::vector<Tensor> layouts_of(const Tensor& plain) {
  const Tensor turned = empty({6, 4}, plain.dtype(), plain.device()).t();
  Tensor(turned).copy_(plain);
  const Tensor wide = zeros({4, 9}, plain.dtype(), plain.device());
  const Tensor part = wide.narrow(1, 2, 6);
  Tensor(part).copy_(plain);
  const Tensor sparse = zeros({4, 12}, plain.dtype(), plain.device());
  const Tensor apart = sparse.slice(1, 0, 12, 2);
  Tensor(apart).copy_(plain);
  return {plain, turned, part, apart};
}

void check_layouts(const Device& device, DType dtype) {
  set_default_device(device);
  Generator generator(4);
  const double bound = dtype == DType::float32 ? 1e-5 : 1e-14;
  const Tensor left = rand({4, 6}, generator, dtype);
  const Tensor right = rand({6, 4}, generator, dtype);
  const std::vector<double> expected = product_of(left, right);
  std::vector<double> doubled = expected;
  for (double& value : doubled) value *= 2;
  for (const Tensor& a : layouts_of(left)) {
    for (const Tensor& b : layouts_of(right.t().contiguous())) {
      const std::vector<Tensor> targets = {
          empty({4, 4}, dtype), empty({4, 4}, dtype).t(),
          empty({4, 8}, dtype).narrow(1, 1, 4)};
      for (const Tensor& target : targets) {
        matmul_into(target, a, b.t());
        check_close(target, expected, bound);
        matmul_into(target, a, b.t(), true);
        check_close(target, doubled, 2 * bound);
      }
    }
  }
  const Tensor same = full({1, 6}, 2, dtype).expand({4, 6});
  const Tensor out = empty({4, 4}, dtype);
  matmul_into(out, same, right);
  check_close(out, product_of(same, right), bound);
  set_default_device(cpu_device);
}

}  // namespace

TEST_CASE("matrices multiply however they lie") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    check_layouts(cpu_device, dtype);
    check_layouts(parse_device("cuda-sim"), dtype);  // on the host
    const Replaced replaced;
    check_layouts(parse_device("cuda-sim"), dtype);
    CHECK(fake.products == 4 * 4 * 3 * 2 + 1);
  }
}

namespace {

/// Products of three shapes, among them turned, strided and empty matrices.
struct Products {
  explicit Products(DType dtype) {
    Generator generator(5);
    const Tensor wide = rand({4, 12}, generator, dtype);
    for (int i = 0; i < 3; ++i) {
      add(rand({4, 6}, generator, dtype), rand({6, 4}, generator, dtype));
      add(rand({6, 4}, generator, dtype).t(), rand({6, 4}, generator, dtype));
      add(wide.slice(1, 0, 12, 2), rand({4, 6}, generator, dtype).t());
      add(rand({33, 20}, generator, dtype), rand({20, 3}, generator, dtype));
      const Tensor square = rand({5, 5}, generator, dtype);
      add(square, rand({5, 5}, generator, dtype));
      add(square, rand({5, 5}, generator, dtype).t());
      add(rand({5, 5}, generator, dtype).t(), square);
    }
    add(zeros({0, 6}, dtype), rand({6, 4}, generator, dtype));
    add(zeros({3, 0}, dtype), zeros({0, 2}, dtype));
    targets[1] = rand({4, 4}, generator, dtype).t();
    targets[4] = rand({5, 5}, generator, dtype).t();
  }

  void add(const Tensor& left, const Tensor& right) {
    a.push_back(left);
    b.push_back(right);
    targets.push_back(
        full({left.shape()[0], right.shape()[1]}, 3, left.dtype()));
  }

  std::vector<Tensor> a;
  std::vector<Tensor> b;
  std::vector<Tensor> targets;
};

std::vector<Tensor> copies_of(const std::vector<Tensor>& list) {
  std::vector<Tensor> copies;
  for (const Tensor& each : list) copies.push_back(each.clone());
  return copies;
}

// Together and one by one, in the same bits; then how many calls it took.
void check_together(const Device& device, DType dtype) {
  set_default_device(device);
  const Products products(dtype);
  for (const bool accumulate : {false, true}) {
    const std::vector<Tensor> alone = copies_of(products.targets);
    const std::vector<Tensor> together = copies_of(products.targets);
    for (std::size_t i = 0; i < alone.size(); ++i) {
      matmul_into(alone[i], products.a[i], products.b[i], accumulate);
    }
    fake.calls = 0;
    matmul_each_into(together, products.a, products.b, accumulate);
    for (std::size_t i = 0; i < alone.size(); ++i) {
      CAPTURE(i);
      CHECK(bitwise_equal(together[i], alone[i]));
    }
  }
  set_default_device(cpu_device);
}

}  // namespace

TEST_CASE("many products together have the bits of each alone") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    check_together(cpu_device, dtype);
    check_together(parse_device("cuda-sim"), dtype);  // on the host
    const Replaced replaced;
    check_together(parse_device("cuda-sim"), dtype);
    // [4, 6] by [6, 4] and [5, 5] by [5, 5], as they lie and with one of the two
    // turned; [33, 20]; and the one without a sum. One without elements needs no
    // call.
    CHECK(fake.calls == 3 + 3 + 1 + 1);
  }
  matmul_each_into({}, {}, {});
}

TEST_CASE("of products that do not fit, none is computed") {
  const Tensor two = full({2, 2}, 2);
  const std::vector<Tensor> fits = {full({2, 2}, 7), full({2, 2}, 7)};
  const auto refused = [&](const std::vector<Tensor>& targets,
                           const std::vector<Tensor>& a,
                           const std::vector<Tensor>& b) {
    return message_of<Error>([&] { matmul_each_into(targets, a, b); });
  };
  CHECK(refused(fits, {two, zeros({2, 3})}, {two, two}) ==
        "matmul: matrices of shape [2, 3] and [2, 2] have no product of shape "
        "[2, 2]");
  CHECK(refused(fits, {two}, {two, two}) ==
        "matmul: 2 results for lists of 1 and 2 matrices; expected as many");
  const Tensor wide = zeros({2, 2}, DType::float64);
  CHECK(refused({fits[0], wide}, {two, wide}, {two, wide}) ==
        "matmul: the dtypes float32 and float64 differ; convert one with to()");
  CHECK(fits[0].to_vector() == std::vector<double>(4, 7.0));
}

TEST_CASE("matrices at odd addresses") {
  std::vector<char> bytes(64);
  const Tensor a = from_blob(bytes.data() + 1, {2, 2});
  Tensor(a).copy_(tensor({1, 2, 3, 4}).view({2, 2}));
  const Tensor out = from_blob(bytes.data() + 35, {2, 2});
  matmul_into(out, a, a.t());
  CHECK(out.to_vector() == std::vector<double>{5, 11, 11, 25});
}

TEST_CASE("matrices without elements") {
  const Tensor out = full({2, 3}, 7);
  matmul_into(out, zeros({2, 0}), zeros({0, 3}), true);
  CHECK(out.to_vector() == std::vector<double>(6, 7.0));
  matmul_into(out, zeros({2, 0}), zeros({0, 3}));
  CHECK(out.to_vector() == std::vector<double>(6, 0.0));
  matmul_into(zeros({0, 3}), zeros({0, 2}), zeros({2, 3}));
}

TEST_CASE("pending work on an operand comes first") {
  const Tensor a = zeros({2, 2});
  const Tensor out = empty({2, 2});
  auto step = compile([&] {
    foreach_add_({a}, 1.0);
    matmul_into(out, a, a);
  });
  step();
  CHECK(out.to_vector() == std::vector<double>(4, 2.0));
  CHECK(step.counters().graph_breaks == 1);
}

TEST_CASE("matrices that do not fit are refused") {
  const Tensor two = zeros({2, 2});
  const auto refused = [&](const Tensor& target, const Tensor& a,
                           const Tensor& b) {
    return message_of<Error>([&] { matmul_into(target, a, b); });
  };
  CHECK(refused(two, zeros({2, 3}), two) ==
        "matmul: matrices of shape [2, 3] and [2, 2] have no product of shape "
        "[2, 2]");
  CHECK(refused(zeros({2, 3}), two, two) ==
        "matmul: matrices of shape [2, 2] and [2, 2] have no product of shape "
        "[2, 3]");
  CHECK(refused(two, zeros({2}), two) ==
        "matmul: the first matrix has shape [2]; expected two dimensions");
  CHECK(refused(two, two, Tensor()) ==
        "matmul: the second matrix is undefined");
  CHECK(refused(two, two, zeros({2, 2}, DType::float64)) ==
        "matmul: the dtypes float32 and float64 differ; convert one with to()");
  const Tensor half = zeros({2, 2}, DType::float16);
  CHECK(contains(refused(half, half, half), "float32 and float64"));
  const Tensor there = two.to(parse_device("cuda-sim"));
  CHECK(contains(refused(two, two, there), "on cpu and cuda-sim"));
}
