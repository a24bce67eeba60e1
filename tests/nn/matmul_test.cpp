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
