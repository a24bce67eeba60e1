// Means of rows and columns: their order, their bits, and what they refuse.
#include "fusebook/foreach/matrix_means.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/foreach/reductions.h"
#include "fusebook/support/error.h"
#include "support/step_testing.h"
#include "support/tested_device.h"
#include "support/thread_count.h"

using namespace fuse;
using namespace step_testing;
using testing::contains;
using testing::message_of;
using testing::Random;
using testing::Threads;

namespace {

const std::vector<Shape> shapes = {
    {5, 3},   {1, 1}, {64, 2}, {65, 300}, {2, 3, 4},  {3, 2, 130, 5}, {1, 700},
    {700, 1}, {0, 3}, {3, 0},  {0, 2, 2}, {9, 16411}, {129, 57}};

std::vector<Tensor> some_tensors(DType dtype, std::uint64_t seed = 1) {
  Random random(seed);
  std::vector<Tensor> tensors;
  for (const Shape& shape : shapes) {
    tensors.push_back(random_tensor(shape, random, 0, dtype));
  }
  return tensors;
}

std::int64_t matrices_of(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  std::int64_t count = 1;
  for (std::size_t k = 0; k + 2 < shape.size(); ++k) count *= shape[k];
  return count;
}

// The matrix of a tensor with this number, in row-major order.
Tensor matrix_of(const Tensor& tensor, std::int64_t number) {
  const Shape& shape = tensor.shape();
  const std::size_t outer = shape.size() - 2;
  const Tensor flat = tensor.contiguous().view(
      {matrices_of(tensor), shape[outer], shape[outer + 1]});
  return flat.select(0, number);
}

double rounded(double value, DType dtype) {
  return full({}, value, dtype).item();
}

// Bands of 64 rows, each from 0, one after the other.
double column_mean(const Tensor& matrix, std::int64_t column, bool squares) {
  const std::vector<double> values = matrix.select(1, column).to_vector();
  double sum = 0;
  for (std::size_t begin = 0; begin < values.size(); begin += 64) {
    double band = 0;
    for (std::size_t i = begin; i < std::min(begin + 64, values.size()); ++i) {
      band += squares ? values[i] * values[i] : values[i];
    }
    sum = begin == 0 ? band : sum + band;
  }
  return sum / double(values.size());
}

// As the sum of a tensor that has this row alone.
double row_mean(const Tensor& matrix, std::int64_t row, bool squares) {
  Tensor wide = matrix.select(0, row).to(DType::float64).clone();
  if (squares) {
    std::vector<double> values = wide.to_vector();
    for (double& value : values) value *= value;
    assign(wide, values);
  }
  return foreach_sum({wide})[0].item() / double(wide.numel());
}

void check_bits(const Tensor& tensor, const Tensor& rows, const Tensor& columns,
                bool squares) {
  const std::vector<double> of_rows = rows.to_vector();
  const std::vector<double> of_columns = columns.to_vector();
  const std::int64_t height = tensor.shape()[std::size_t(tensor.dim()) - 2];
  const std::int64_t width = tensor.shape()[std::size_t(tensor.dim()) - 1];
  const auto same = [&](double value, double wanted) {
    const double exact = rounded(wanted, tensor.dtype());
    return value == exact || (std::isnan(value) && std::isnan(exact));
  };
  int wrong = 0;
  for (std::int64_t m = 0; m < matrices_of(tensor); ++m) {
    const Tensor matrix = matrix_of(tensor, m);
    for (std::int64_t i = 0; i < height; ++i) {
      const double found = of_rows[std::size_t(m * height + i)];
      wrong += same(found, row_mean(matrix, i, squares)) ? 0 : 1;
    }
    for (std::int64_t j = 0; j < width; ++j) {
      const double found = of_columns[std::size_t(m * width + j)];
      wrong += same(found, column_mean(matrix, j, squares)) ? 0 : 1;
    }
  }
  CHECK(wrong == 0);
}

std::vector<Tensor> on(const Device& device, const std::vector<Tensor>& from) {
  std::vector<Tensor> moved;
  for (const Tensor& each : from) moved.push_back(each.to(device));
  return moved;
}

std::vector<Tensor> results_of(const std::vector<Tensor>& tensors,
                               bool squares) {
  MatrixMeans means(tensors, {});
  means.take(tensors, squares);
  std::vector<Tensor> results;
  for (const Tensor& each : means.rows()) results.push_back(each.cpu());
  for (const Tensor& each : means.columns()) results.push_back(each.cpu());
  return results;
}

}  // namespace

TEST_CASE("rows and columns are added in the documented order") {
  for (const DType dtype :
       {DType::float32, DType::float64, DType::float16, DType::bfloat16}) {
    for (const bool squares : {false, true}) {
      const std::vector<Tensor> tensors = some_tensors(dtype);
      MatrixMeans means(tensors, {});
      means.take(tensors, squares);
      for (std::size_t t = 0; t < tensors.size(); ++t) {
        CAPTURE(to_string(shapes[t]));
        Shape of_rows = shapes[t];
        of_rows.back() = 1;
        Shape of_columns = shapes[t];
        of_columns[of_columns.size() - 2] = 1;
        REQUIRE(means.rows()[t].shape() == of_rows);
        REQUIRE(means.columns()[t].shape() == of_columns);
        REQUIRE(means.rows()[t].dtype() == dtype);
        check_bits(tensors[t], means.rows()[t], means.columns()[t], squares);
      }
    }
  }
}

// In float64 the order shows: rounding to fewer bits hides it.
TEST_CASE("the bits are the same on a GPU and on any number of threads") {
  for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16}) {
    const std::vector<Tensor> tensors = some_tensors(dtype, 3);
    const Threads one(1);
    const std::vector<Tensor> wanted = results_of(tensors, true);
    for (const int threads : {2, 3, 7, 64}) {
      CAPTURE(threads);
      const Threads many(threads);
      REQUIRE(same_bits(results_of(tensors, true), wanted));
    }
    REQUIRE(same_bits(results_of(on(testing::tested_device(), tensors), true),
                      wanted));
  }
}

TEST_CASE("where elements lie does not matter") {
  Random random(4);
  const Tensor dense = random_tensor({3, 4, 70, 9}, random);
  const std::vector<Tensor> wanted = results_of({dense}, false);
  // The same elements in other orders of memory.
  for (const Shape& order : std::vector<Shape>{
           {0, 1, 3, 2}, {1, 0, 2, 3}, {3, 2, 1, 0}, {2, 3, 0, 1}}) {
    const Tensor moved = dense.permute(order).contiguous();
    Shape back(4);
    for (std::size_t k = 0; k < 4; ++k) {
      back[std::size_t(order[k])] = std::int64_t(k);
    }
    const Tensor same = moved.permute(back);
    REQUIRE(bitwise_equal(same, dense));
    CHECK(same_bits(results_of({same}, false), wanted));
  }
  const Tensor wide = random_tensor({8, 40}, random);
  const Tensor part = wide.slice(1, 3, 37, 2);
  CHECK(same_bits(results_of({part}, true),
                  results_of({part.contiguous()}, true)));
  // Gaps on both sides of a dimension of one element.
  const Tensor blocks = random_tensor({2, 1, 4, 5, 3}, random);
  const Tensor gaps = blocks.narrow(2, 0, 3);
  CHECK(same_bits(results_of({gaps}, true),
                  results_of({gaps.contiguous()}, true)));
}

TEST_CASE("only what is wanted is computed") {
  const std::vector<Tensor> tensors = some_tensors(DType::float32);
  MatrixMeans both(tensors, {});
  both.take(tensors);
  MatrixMeans rows(tensors, {.columns = false});
  rows.take(tensors);
  MatrixMeans columns(tensors, {.rows = false});
  columns.take(tensors);
  CHECK(rows.columns().empty());
  CHECK(columns.rows().empty());
  CHECK(bitwise_equal(rows.rows(), both.rows()));
  CHECK(bitwise_equal(columns.columns(), both.columns()));
}

TEST_CASE("means follow a list to other places, and stay where they are") {
  std::vector<Tensor> first = some_tensors(DType::float32, 5);
  const std::vector<Tensor> second = some_tensors(DType::float32, 6);
  MatrixMeans means(first, {});
  means.take(first, true);
  const void* const place = means.rows()[0].raw_data();
  means.take(second, true);
  CHECK(means.rows()[0].raw_data() == place);
  const std::vector<Tensor> wanted = results_of(second, true);
  CHECK(same_bits(means.rows()[3], wanted[3]));
  first[3].copy_(second[3]);
  means.take(first, true);
  CHECK(same_bits(means.rows()[3], wanted[3]));
}

TEST_CASE("NaN and infinity stay in their rows and columns") {
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor matrix = full({3, 4}, 2);
  assign(matrix, {2, 2, 2, 2, 2, NAN, 2, 2, 2, 2, 2, infinity});
  const std::vector<Tensor> means = results_of({matrix}, true);
  const std::vector<double> rows = means[0].to_vector();
  const std::vector<double> columns = means[1].to_vector();
  CHECK(rows[0] == 4);
  CHECK(std::isnan(rows[1]));
  CHECK(rows[2] == infinity);
  CHECK(columns[0] == 4);
  CHECK(std::isnan(columns[1]));
  CHECK(columns[3] == infinity);
}

TEST_CASE("inside compile, what was recorded before runs first") {
  for (const Backend backend :
       {Backend::compiled, Backend::interpreted, Backend::simulated}) {
    const std::vector<Tensor> tensors = {full({70, 4}, 2.0), full({3, 2}, 1.0)};
    const TensorList list(tensors);
    MatrixMeans means(list, {});
    auto step = compile(
        [&] {
          foreach_add_(list, 1.0);
          means.take(list, true);
          foreach_mul_(list, means.columns());
        },
        {.backend = backend});
    step();
    CHECK(tensors[0].to_vector()[0] == 27);
    CHECK(tensors[1].to_vector()[5] == 8);
    CHECK(step.counters().graph_breaks == 1);
    CHECK(step.counters().launches == 3);
    CHECK(contains(step.report(), "means of rows and columns"));
    auto whole = compile(
        [&] {
          foreach_add_(list, 1.0);
          means.take(list);
        },
        {.fullgraph = true, .backend = backend});
    CHECK(contains(message_of<Error>([&] { whole(); }), "graph break"));
    CHECK(tensors[0].to_vector()[0] == 27);
  }
}

TEST_CASE("a launch is counted, on a GPU another for the bands") {
  const std::vector<Tensor> small = {full({64, 4}, 1)};
  const std::vector<Tensor> large = {full({65, 4}, 1)};
  const auto launches = [](const std::vector<Tensor>& tensors) {
    MatrixMeans means(tensors, {});
    return counters_of([&] { means.take(tensors); });
  };
  CHECK(launches(small).launches == 1);
  CHECK(launches(large).launches == 1);
  CHECK(launches(small).bytes_moved == 4 * (256 + 64 + 4));
  const Device gpu = testing::tested_device();
  CHECK(launches(on(gpu, small)).launches == 1);
  CHECK(launches(on(gpu, large)).launches == 2);
  CHECK(launches({}).launches == 0);
}

TEST_CASE("lists that do not fit are refused") {
  const TensorList good = {zeros({2, 3})};
  MatrixMeans means(good, {});
  const auto refused = [](const auto& call) { return message_of<Error>(call); };
  CHECK(contains(refused([&] { means.take({zeros({3, 2})}); }),
                 "other shapes, another dtype or another device"));
  CHECK(contains(refused([&] { means.take({zeros({2, 3}, DType::float64)}); }),
                 "another dtype"));
  CHECK(contains(
      refused([&] {
        means.take({zeros({2, 3}, DType::float32, testing::tested_device())});
      }),
      "another device"));
  CHECK(contains(refused([] { const MatrixMeans made({zeros({3})}, {}); }),
                 "a tensor has shape [3]; rows and columns take two"));
  CHECK(contains(refused([] {
                   const MatrixMeans made(TensorList::per_tensor(scalars(2)),
                                          {});
                 }),
                 "not of per-tensor numbers"));
  TensorList gone = good;
  const TensorList kept = std::move(gone);
  // NOLINTNEXTLINE(bugprone-use-after-move)
  CHECK(contains(refused([&] { means.take(gone); }), "moved from"));
}
