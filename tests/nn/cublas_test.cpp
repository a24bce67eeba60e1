#include "fusebook/nn/cublas.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/nn/model.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/random.h"
#include "support/fake_cublas.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace testing;

namespace {

const Device sim = parse_device("cuda-sim");

// Outputs and all gradients of two backward passes through a stack with biases.
std::vector<Tensor> train(const Device& device, DType dtype,
                          const Shape& input_shape) {
  set_default_device(device);
  Generator generator(3);
  const std::int64_t width = input_shape.back();
  const std::vector<Linear> layers = {Linear(width, 7, generator, true, dtype),
                                      Linear(7, 5, generator, true, dtype)};
  const Sequential stack(layers);
  const Tensor input = rand(input_shape, generator, dtype);
  std::vector<Tensor> all;
  for (int i = 0; i < 2; ++i) {
    const Tensor output = stack(input);
    output.sum().backward();
    all.push_back(output);
  }
  for (const Tensor& param : stack.parameters()) all.push_back(param.grad());
  return all;
}

}  // namespace

TEST_CASE("the layers as matrix products agree with the loops of the host") {
  const Replaced replaced;
  for (const DType dtype : {DType::float32, DType::float64}) {
    for (const Shape& shape :
         {Shape{6}, Shape{1, 6}, Shape{4, 6}, Shape{0, 6}, Shape{3, 1}}) {
      CAPTURE(to_string(shape));
      fake.products = 0;
      const auto there = train(sim, dtype, shape);
      // Forward: two layers; backward: weights, biases, and one gradient between
      // the layers; twice.
      if (shape != Shape{0, 6}) CHECK(fake.products == 2 * (2 + 4 + 1));
      const auto here = train(cpu_device, dtype, shape);
      REQUIRE(there.size() == here.size());
      for (std::size_t i = 0; i < here.size(); ++i) {
        CHECK(there[i].device() == sim);
        CHECK(allclose(there[i].cpu(), here[i], 1e-5, 1e-6));
      }
    }
  }
}

TEST_CASE("a product that fails is an error with its code") {
  const Replaced replaced;
  fake.code = 13;
  CHECK(message_of<Error>([] { train(sim, DType::float32, {6}); }) ==
        "cuda-sim:0: cublasSgemm failed with code 13 (made up)");
}

TEST_CASE("without cuBLAS the host computes") {
  CHECK(cublas_for(cpu_device) == nullptr);
  CHECK(cublas_for(sim) == nullptr);
}

TEST_CASE("pending work on a layer's input comes first") {
  const Replaced replaced;
  set_default_device(sim);
  Generator generator(3);
  const Linear layer(4, 2, generator);
  const Tensor input = zeros({4});
  Tensor output;
  auto step = compile([&] {
    foreach_add_({input}, 1.0);
    output = layer(input);
  });
  step();
  CHECK(step.counters().graph_breaks == 1);
  const Tensor again = layer(input);
  CHECK(bitwise_equal(output, again));
  CHECK_FALSE(allclose(output.cpu(), layer(zeros({4})).cpu()));
}
