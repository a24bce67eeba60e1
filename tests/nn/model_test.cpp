#include "fusebook/nn/model.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>

#include "fusebook/runtime/parallel.h"
#include "fusebook/support/error.h"

using namespace fuse;

namespace {

/// A matrix in float64 for the plain loops that serve as oracle.
struct Matrix {
  std::size_t rows;
  std::size_t columns;
  std::vector<double> values;

  double& at(std::size_t r, std::size_t c) { return values[r * columns + c]; }
  double at(std::size_t r, std::size_t c) const {
    return values[r * columns + c];
  }
};

Matrix matrix_of(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  const auto rows = shape.size() == 2 ? std::size_t(shape[0]) : 1;
  return {rows, std::size_t(shape.back()), tensor.to_vector()};
}

std::vector<const Linear*> linears_of(const Sequential& model) {
  std::vector<const Linear*> all;
  for (const Layer& layer : model.layers()) {
    all.push_back(layer.as<Linear>());
    REQUIRE(all.back() != nullptr);
  }
  return all;
}

Matrix zeros_matrix(std::size_t rows, std::size_t columns) {
  return {rows, columns, std::vector<double>(rows * columns, 0.0)};
}

struct Oracle {
  Matrix output;
  std::vector<Matrix> weight_grads;
  std::vector<Matrix> bias_grads;
};

Matrix forward(const Linear& layer, const Matrix& input) {
  const Matrix weight = matrix_of(layer.weight());
  Matrix output = zeros_matrix(input.rows, weight.rows);
  for (std::size_t b = 0; b < input.rows; ++b) {
    for (std::size_t o = 0; o < weight.rows; ++o) {
      double sum = layer.bias().defined() ? layer.bias().to_vector()[o] : 0.0;
      for (std::size_t i = 0; i < weight.columns; ++i) {
        sum += input.at(b, i) * weight.at(o, i);
      }
      output.at(b, o) = sum;
    }
  }
  return output;
}

/// Output and gradients of output.sum() in float64, by plain loops.
Oracle run_oracle(const Sequential& model, const Tensor& input) {
  std::vector<Matrix> values{matrix_of(input)};
  for (const Linear* layer : linears_of(model)) {
    values.push_back(forward(*layer, values.back()));
  }
  Oracle oracle{values.back(), {}, {}};
  Matrix grad = values.back();
  std::fill(grad.values.begin(), grad.values.end(), 1.0);
  for (std::size_t n = model.layers().size(); n-- > 0;) {
    const Matrix weight = matrix_of(linears_of(model)[n]->weight());
    const Matrix& in = values[n];
    Matrix weight_grad = zeros_matrix(weight.rows, weight.columns);
    Matrix bias_grad = zeros_matrix(1, weight.rows);
    Matrix next = zeros_matrix(in.rows, in.columns);
    for (std::size_t b = 0; b < in.rows; ++b) {
      for (std::size_t o = 0; o < weight.rows; ++o) {
        bias_grad.at(0, o) += grad.at(b, o);
        for (std::size_t i = 0; i < weight.columns; ++i) {
          weight_grad.at(o, i) += grad.at(b, o) * in.at(b, i);
          next.at(b, i) += grad.at(b, o) * weight.at(o, i);
        }
      }
    }
    oracle.weight_grads.insert(oracle.weight_grads.begin(), weight_grad);
    oracle.bias_grads.insert(oracle.bias_grads.begin(), bias_grad);
    grad = next;
  }
  return oracle;
}

double worst_difference(const Tensor& tensor, const Matrix& expected) {
  const std::vector<double> values = tensor.to_vector();
  REQUIRE(values.size() == expected.values.size());
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    worst = std::max(worst, std::abs(values[i] - expected.values[i]));
  }
  return worst;
}

void check_against_oracle(const Sequential& model, const Tensor& input,
                          double bound) {
  const Oracle oracle = run_oracle(model, input);
  const Tensor output = model(input);
  CHECK(worst_difference(output, oracle.output) < bound);
  output.sum().backward();
  for (std::size_t n = 0; n < model.layers().size(); ++n) {
    const Linear& layer = *linears_of(model)[n];
    CHECK(worst_difference(layer.weight().grad(), oracle.weight_grads[n]) <
          bound);
    if (!layer.bias().defined()) continue;
    CHECK(worst_difference(layer.bias().grad(), oracle.bias_grads[n]) < bound);
  }
}

std::vector<Tensor> grads_of(const Sequential& model) {
  std::vector<Tensor> grads;
  for (const Tensor& parameter : model.parameters()) {
    grads.push_back(parameter.grad());
  }
  return grads;
}

}  // namespace

TEST_CASE("a layer by hand") {
  Generator generator(1);
  const Linear layer(2, 3, generator);
  layer.weight().clone();
  Tensor weight = layer.weight();
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  std::copy(values.begin(), values.end(), weight.data<float>());
  Tensor(layer.bias()).copy_(tensor({0.5, 0.0, -1.0}));
  const Tensor input = tensor({10.0, 1.0});
  const Tensor output = layer(input);
  CHECK(output.to_vector() == std::vector<double>{12.5, 34, 55});
  output.sum().backward();
  CHECK(layer.weight().grad().to_vector() ==
        std::vector<double>{10, 1, 10, 1, 10, 1});
  CHECK(layer.bias().grad().to_vector() == std::vector<double>{1, 1, 1});
}

TEST_CASE("forward and backward agree with plain loops in float64") {
  Generator generator(2);
  for (const DType dtype : {DType::float32, DType::float64}) {
    const double bound = dtype == DType::float32 ? 2e-5 : 1e-13;
    for (const Shape& shape : {Shape{37}, Shape{1, 37}, Shape{5, 37}}) {
      const Sequential model({Linear(37, 16, generator, true, dtype),
                              Linear(16, 301, generator, false, dtype),
                              Linear(301, 2, generator, true, dtype)});
      check_against_oracle(model, rand(shape, generator, dtype), bound);
    }
  }
}

TEST_CASE("layers called one by one give what the stack gives") {
  Generator generator(3);
  const Sequential stack = linear_stack(3, 20, generator);
  const Sequential other = stack.clone();
  const Tensor input = rand({4, 20}, generator);
  Tensor value = input;
  for (const Layer& layer : other.layers()) value = layer(value);
  const Tensor output = stack(input);
  CHECK(bitwise_equal(output, value));
  output.sum().backward();
  value.sum().backward();
  CHECK(bitwise_equal(grads_of(stack), grads_of(other)));
}

TEST_CASE("bits do not depend on the number of threads") {
  Generator generator(5);
  const Sequential reference(
      {Linear(257, 130, generator), Linear(130, 515, generator)});
  const Tensor input = rand({9, 257}, generator);
  set_thread_count(1);
  const Tensor output = reference(input);
  output.sum().backward();
  for (const int threads : {2, 3, 8}) {
    set_thread_count(threads);
    const Sequential model = reference.clone();
    model.zero_grad();
    const Tensor again = model(input);
    CHECK(bitwise_equal(again, output));
    again.sum().backward();
    CHECK(bitwise_equal(grads_of(model), grads_of(reference)));
  }
  set_thread_count(0);
}

TEST_CASE("gradients add up until they are zeroed") {
  Generator generator(6);
  const Sequential model = linear_stack(2, 8, generator);
  const Tensor input = rand({8}, generator);
  model(input).sum().backward();
  std::vector<std::vector<double>> once;
  for (const Tensor& grad : grads_of(model)) once.push_back(grad.to_vector());
  const void* address = grads_of(model)[0].raw_data();
  model(input).sum().backward();
  CHECK(grads_of(model)[0].raw_data() == address);
  for (std::size_t n = 0; n < once.size(); ++n) {
    const std::vector<double> twice = grads_of(model)[n].to_vector();
    for (std::size_t i = 0; i < twice.size(); ++i) {
      CHECK(twice[i] == 2 * once[n][i]);
    }
  }
  model.zero_grad(false);
  CHECK(grads_of(model)[1].to_vector() == std::vector<double>(64, 0.0));
  model.zero_grad();
  CHECK_FALSE(grads_of(model)[1].defined());
}

TEST_CASE("a gradient at an odd address") {
  Generator generator(7);
  const Linear layer(3, 1, generator, false);
  std::vector<char> bytes(16);
  Tensor grad = from_blob(bytes.data() + 1, {1, 3});
  grad.fill_(1);
  Tensor(layer.weight()).set_grad(grad);
  const Tensor input = from_blob(bytes.data() + 2, {3});
  const Tensor numbers = tensor({1.0, 2.0, 3.0});
  layer(numbers).sum().backward();
  CHECK(grad.to_vector() == std::vector<double>{2, 3, 4});
  std::vector<char> odd(16);
  Tensor odd_input = from_blob(odd.data() + 3, {3});
  odd_input.copy_(numbers);
  CHECK(bitwise_equal(layer(odd_input), layer(numbers)));
}

TEST_CASE("weights come from the range torch uses, in order of the seed") {
  Generator generator(8);
  Generator same(8);
  const Linear layer(100, 50, generator);
  for (const Tensor& parameter : layer.parameters()) {
    for (const double value : parameter.to_vector()) {
      CHECK(std::abs(value) <= double(0.1F));
    }
  }
  CHECK(bitwise_equal(layer.parameters(), Linear(100, 50, same).parameters()));
  CHECK(layer.weight().shape() == Shape{50, 100});
  CHECK(layer.bias().shape() == Shape{50});
  CHECK(layer.parameters().size() == 2);
  CHECK(Linear(2, 2, generator, false).parameters().size() == 1);
}

TEST_CASE("a clone is a true copy") {
  Generator generator(9);
  const Sequential model({Linear(4, 4, generator), Linear(4, 2, generator)});
  model(rand({4}, generator)).sum().backward();
  const Sequential copy = model.clone();
  CHECK(bitwise_equal(copy.parameters(), model.parameters()));
  CHECK(bitwise_equal(grads_of(copy), grads_of(model)));
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(copy.parameters()[i].raw_data() != model.parameters()[i].raw_data());
    CHECK(grads_of(copy)[i].raw_data() != grads_of(model)[i].raw_data());
  }
  copy.parameters()[0].fill_(0);
  CHECK_FALSE(bitwise_equal(copy.parameters(), model.parameters()));
}

TEST_CASE("empty batches and empty stacks") {
  Generator generator(10);
  const Sequential model = linear_stack(2, 4, generator);
  const Tensor output = model(empty({0, 4}));
  CHECK(output.shape() == Shape{0, 4});
  output.sum().backward();
  CHECK(grads_of(model)[0].to_vector() == std::vector<double>(16, 0.0));
  const Tensor input = rand({3}, generator);
  CHECK(bitwise_equal(Sequential({})(input), input));
}

TEST_CASE("a very deep stack needs no deep call stack") {
  Generator generator(11);
  const Sequential model = linear_stack(100000, 1, generator);
  Tensor output = model(tensor({1.0}));
  output.sum().backward();
  CHECK(grads_of(model)[0].defined());
  output = Tensor();
}

TEST_CASE("what does not fit is named with both sizes") {
  Generator generator(12);
  const Sequential model({Linear(4, 3, generator), Linear(3, 2, generator)});
  CHECK_THROWS_WITH_AS(model(zeros({2, 5})),
                       "layer 0, Linear(4, 3): the input has shape [2, 5] and "
                       "dtype float32; expected shape [4] or [batch, 4]",
                       Error);
  CHECK_THROWS_WITH_AS((*linears_of(model)[1])(zeros({4})),
                       "Linear(3, 2): the input has shape [4] and dtype "
                       "float32; expected shape [3] or [batch, 3]",
                       Error);
  CHECK_THROWS_AS(model(tensor(1.0)), Error);
  CHECK_THROWS_AS(model(zeros({1, 1, 4})), Error);
  CHECK_THROWS_WITH_AS(model(Tensor()),
                       "layer 0, Linear(4, 3): the input is undefined", Error);
  CHECK_THROWS_WITH_AS(
      model(zeros({4}, DType::float64)),
      "layer 0, Linear(4, 3): the input has shape [4] and dtype float64; the "
      "weight is float32",
      Error);
  CHECK_THROWS_WITH_AS(
      Sequential({Linear(4, 3, generator), Linear(4, 2, generator)}),
      "Sequential: layer 1, Linear(4, 2) of float32 cannot take the output of "
      "layer 0, Linear(4, 3) of float32",
      Error);
  CHECK_THROWS_WITH_AS(Linear(0, 3, generator),
                       "Linear: the number of inputs must be at least 1, not 0",
                       Error);
  CHECK_THROWS_AS(linear_stack(0, 4, generator), Error);
  CHECK_THROWS_AS(linear_stack(4, -1, generator), Error);
}

TEST_CASE("a stack that cannot fit is refused before it is made") {
  Generator generator(13);
  Generator untouched(13);
  CHECK_THROWS_AS(linear_stack(1000000, 65536, generator), Error);
  CHECK(generator.bits() == untouched.bits());
}
