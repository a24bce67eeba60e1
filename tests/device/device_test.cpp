#include "fusebook/device/device.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "fusebook/bench/adam_by_hand.h"
#include "fusebook/compile/compile.h"
#include "fusebook/cuda/gpu_error.h"
#include "fusebook/cuda_sim/gpu_sim_block.h"
#include "fusebook/device/device_registry.h"
#include "fusebook/device/streams.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/nn/cublas.h"
#include "fusebook/nn/model.h"
#include "fusebook/optim/all.h"
#include "fusebook/tensor/random.h"
#include "support/step_testing.h"
#include "support/tested_device.h"

using namespace fuse;
using namespace testing;
using step_testing::mixed_shapes;

namespace {

const Device sim = tested_device();
const std::string sim_name = to_string(sim);

std::vector<Tensor> random_tensors(const std::vector<Shape>& shapes,
                                   std::uint64_t seed,
                                   DType dtype = DType::float32) {
  Generator generator(seed);
  std::vector<Tensor> tensors;
  for (const Shape& shape : shapes) {
    tensors.push_back(rand(shape, generator, dtype));
  }
  return tensors;
}

std::vector<Tensor> moved(const std::vector<Tensor>& tensors,
                          const Device& device) {
  std::vector<Tensor> there;
  for (const Tensor& tensor : tensors) there.push_back(tensor.to(device));
  return there;
}

// Parameters with gradients, the same numbers on every device.
std::vector<Tensor> parameters(const std::vector<Shape>& shapes,
                               const Device& device,
                               DType dtype = DType::float32) {
  const auto params = moved(random_tensors(shapes, 1, dtype), device);
  const auto grads = moved(random_tensors(shapes, 2, dtype), device);
  for (std::size_t i = 0; i < params.size(); ++i) {
    Tensor(params[i]).set_grad(grads[i]);
  }
  return params;
}

}  // namespace

TEST_CASE("devices without streams take no turns") {
  int mark = 0;  // its address is no stream, which nobody sees
  for (const char* name : {"cpu", "cuda-sim"}) {
    const Device device = parse_device(name);
    CHECK_NOTHROW(run_after(device, nullptr));
    CHECK_NOTHROW(run_before(device, &mark));
  }
  CHECK_THROWS_AS(run_after(parse_device("cuda:63"), nullptr), Error);
}

TEST_CASE("names of devices") {
  for (const char* name : {"cpu", "cuda:0", "cuda:7", "cuda:63", "cuda-sim"}) {
    CHECK(to_string(parse_device(name)) == name);
    const Device device = parse_device(name);
    CHECK(device_of_memory(memory_code(device)) == device);
  }
  CHECK(to_string(parse_device("cuda")) == "cuda:0");
  CHECK(memory_code(cpu_device) == 0);
  for (const char* name : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "CPU",
                           "cuda-sim:0", "cuda:0 ", "cuda:1234567890"}) {
    CHECK(message_of<UsageError>([&] { parse_device(name); }) ==
          "'" + std::string(name) +
              "' is not a device; use cpu, cuda, cuda:N or cuda-sim");
  }
}

TEST_CASE("tensors move between devices, whatever their strides and dtype") {
  for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16}) {
    for (const Shape& shape : mixed_shapes(12)) {
      const Tensor host = random_tensors({shape}, 5, dtype)[0];
      const Tensor there = host.to(sim);
      CHECK(there.device() == sim);
      CHECK(there.raw_data() != host.raw_data());
      CHECK(bitwise_equal(there.cpu(), host));
      CHECK(bitwise_equal(there, host));
      CHECK(bitwise_equal(there.clone(), host));
      CHECK(there.clone().device() == sim);
    }
    const Tensor matrix = random_tensors({{6, 9}}, 7, dtype)[0];
    const Tensor there = matrix.to(sim);
    CHECK(bitwise_equal(there.t(), matrix.t()));
    CHECK(bitwise_equal(there.slice(1, 1, 9, 3).contiguous(),
                        matrix.slice(1, 1, 9, 3)));
    Tensor part = there.slice(1, 0, 9, 2);
    part.fill_(2.5);
    Tensor expected = matrix.clone();
    expected.slice(1, 0, 9, 2).fill_(2.5);
    CHECK(bitwise_equal(there, expected));
    part.copy_(matrix.slice(1, 0, 9, 2));
    CHECK(bitwise_equal(there, matrix));
    const DType other =
        dtype == DType::float32 ? DType::float64 : DType::float32;
    CHECK(bitwise_equal(there.to(other), matrix.to(other)));
    CHECK(there.to(other).device() == sim);
  }
}

TEST_CASE("what looks at a tensor on a device gets its numbers") {
  const Tensor there = tensor({1.0, 2.0, 3.5}).to(sim);
  CHECK(there.to_vector() == std::vector<double>{1, 2, 3.5});
  CHECK(there.sum().item() == 6.5);
  CHECK(there.sum().device() == cpu_device);
  CHECK(to_string(there) == to_string(tensor({1.0, 2.0, 3.5})));
  CHECK(allclose(there, tensor({1.0, 2.0, 3.5})));
  CHECK(message_of<Error>([&] { there.data<float>(); }) ==
        "data<float>() was called on a tensor on " + sim_name +
            ", whose memory the host cannot read; copy it with cpu()");
}

TEST_CASE("new tensors lie on the default device, numbers on the host") {
  const DefaultDevice chosen(sim);
  Generator generator(3);
  CHECK(empty({2}).device() == sim);
  CHECK(zeros({2}).device() == sim);
  CHECK(zeros({2}).to_vector() == std::vector<double>{0, 0});
  CHECK(rand({2}, generator).device() == sim);
  CHECK(scalars(2)[1].device() == sim);
  CHECK(tensor({1.0, 2.0}).device() == sim);
  CHECK(tensor(0.01).device() == cpu_device);
}

TEST_CASE("list operations, one by one and compiled, on the device") {
  const auto shapes = mixed_shapes(9);
  const auto a = random_tensors(shapes, 1);
  const auto b = random_tensors(shapes, 2);
  const TensorList x(moved(a, sim), "x");
  const TensorList y(moved(b, sim), "y");
  const TensorList eager = foreach_lerp(x, foreach_mul(y, 3.0), 0.3);
  CHECK(eager.tensors()[0].device() == sim);
  CHECK(bitwise_equal(
      eager,
      foreach_lerp(TensorList(a), foreach_mul(TensorList(b), 3.0), 0.3)));
  auto step = compile([&] {
    foreach_lerp_(x, foreach_mul(y, 3.0), 0.3);
    foreach_addcdiv_(y, x, foreach_add(foreach_abs(y), 1.0), 0.5);
  });
  step();
  CHECK(step.counters().launches == 1);
  const TensorList u(a);
  const TensorList v(b);
  foreach_lerp_(u, foreach_mul(v, 3.0), 0.3);
  foreach_addcdiv_(v, u, foreach_add(foreach_abs(v), 1.0), 0.5);
  CHECK(bitwise_equal(x, u));
  CHECK(bitwise_equal(y, v));
}

// One chunk is 4096 elements: tails and borders of chunks are in here.
TEST_CASE("Adam on the device has the bits of the CPU") {
  std::vector<Shape> shapes = mixed_shapes(12);
  shapes.insert(shapes.end(), {{4095}, {4096}, {4097}, {3, 4099}});
  for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16}) {
    CAPTURE(name_of(dtype));
    const auto params = parameters(shapes, cpu_device, dtype);
    const auto there = parameters(shapes, sim, dtype);
    const AdamOptions options = {.lr = 0.01, .weight_decay = 0.1};
    Adam cpu(params, options);
    Adam gpu(there, options);
    auto cpu_step = compile([&] { cpu.step(); });
    auto gpu_step = compile([&] { gpu.step(); });
    for (const SimOrder order :
         {SimOrder::ascending, SimOrder::descending, SimOrder::shuffled}) {
      set_sim_order(order, 7);
      cpu_step();
      gpu_step();
      REQUIRE(bitwise_equal(there, params));
    }
    set_sim_order(SimOrder::ascending);
    CHECK(gpu_step.counters().launches == 3);
    CHECK(gpu_step.counters().compilations == 1);
    CHECK(gpu_step.counters().uploads == 1);
    CHECK(gpu.steps() == 3);
  }
}

TEST_CASE("parameters that are views, on the device") {
  const auto build = [](const Device& device) {
    const Tensor whole = random_tensors({{70, 130}}, 4)[0].to(device);
    const Tensor grads = random_tensors({{70, 65}}, 5)[0].to(device);
    const std::vector<Tensor> params = {whole.slice(1, 0, 130, 2),
                                        whole.clone().t()};
    Tensor(params[0]).set_grad(grads);
    Tensor(params[1]).set_grad(random_tensors({{130, 70}}, 6)[0].to(device));
    return std::pair(whole, params);
  };
  const auto [here, params] = build(cpu_device);
  const auto [there, gpu_params] = build(sim);
  Adam cpu(params);
  Adam gpu(gpu_params);
  auto step = compile([&] { gpu.step(); });
  for (int i = 0; i < 2; ++i) {
    cpu.step();
    step();
  }
  CHECK(bitwise_equal(there, here));
  CHECK(bitwise_equal(gpu_params, params));
  CHECK(step.counters().launches == 2);
}

TEST_CASE("tensors on two devices are an error that names them") {
  const Tensor here = tensor({1.0, 2.0});
  const Tensor there = here.to(sim);
  CHECK(message_of<Error>([&] { TensorList({here, there}, "params"); }) ==
        "params[1] is on " + sim_name +
            " but params[0] is on cpu; make one list for each device");
  const TensorList a({here}, "a");
  const TensorList b({there}, "b");
  const std::string both =
      "a is on cpu but b is on " + sim_name +
      "; a launch runs on one device: move the tensors with to(), or "
      "compile a function for each";
  const std::string one_call = message_of<Error>([&] { foreach_add_(a, b); });
  CHECK(contains(one_call, "foreach_add: operand 2 (b) is on "));
  auto step = compile([&] {
    foreach_add_(a, 1.0);
    foreach_add_(b, 1.0);
  });
  CHECK(message_of<Error>([&] { step(); }) == both);
  CHECK(here.to_vector() == std::vector<double>{1, 2});
  CHECK(message_of<Error>([&] { Tensor(here).set_grad(there); }) ==
        "a gradient on " + sim_name + " does not fit a tensor on cpu");
}

TEST_CASE("a model trains on the device as on the host") {
  const auto train = [](const Device& device) {
    const DefaultDevice chosen(device);
    Generator generator(0);
    const auto model = linear_stack(3, 17, generator);
    Adam adam(model.parameters(), {.lr = 0.01});
    auto step = compile([&] { adam.step(); });
    const Tensor input = rand({5, 17}, generator);
    for (int i = 0; i < 3; ++i) {
      adam.zero_grad();
      model(input).sum().backward();
      step();
    }
    std::vector<Tensor> result = model.parameters();
    CHECK(result[0].device() == device);
    return result;
  };
  const std::vector<Tensor> there = train(sim);
  const std::vector<Tensor> here = train(cpu_device);
  if (cublas_for(sim) == nullptr) {
    CHECK(bitwise_equal(there, here));
    return;
  }
  // cuBLAS has an order of its own for the sums of a product.
  for (std::size_t i = 0; i < here.size(); ++i) {
    CHECK(allclose(there[i].cpu(), here[i], 1e-4, 1e-5));
  }
}

TEST_CASE("the hand-written kernel and the generated one give the same bits") {
  // More tensors than one launch of the hand-written kernel takes, and tails.
  std::vector<Shape> shapes(63, {5});
  shapes.insert(shapes.end(), {{4099}, {3, 1001}, {0}});
  const auto params = parameters(shapes, sim);
  const auto twins = parameters(shapes, sim);
  const auto here = parameters(shapes, cpu_device);
  Adam adam(params, {.lr = 0.01});
  AdamByHand by_hand(twins, {.lr = 0.01});
  AdamByHand on_host(here, {.lr = 0.01});
  auto step = compile([&] { adam.step(); });
  for (int i = 0; i < 3; ++i) {
    step();
    by_hand.step();
    on_host.step();
  }
  CHECK(bitwise_equal(params, twins));
  CHECK(bitwise_equal(here, twins));
}

TEST_CASE("an optimizer whose parameters lie on several devices") {
  const auto build = [](const Device& device) {
    auto params = parameters({{5}, {3, 4}}, cpu_device);
    const auto others = parameters({{7}}, device);
    params.push_back(others[0]);
    const Tensor frozen = zeros({2});
    params.insert(params.begin(), frozen);
    return params;
  };
  for (const bool foreach : {true, false}) {
    const auto mixed = build(sim);
    const auto here = build(cpu_device);
    NAdam both(mixed, {.foreach = foreach});
    NAdam one(here, {.foreach = foreach});
    for (int i = 0; i < 2; ++i) {
      both.step();
      one.step();
    }
    CHECK(bitwise_equal(mixed, here));
  }
}

TEST_CASE("overlapping views on a device are copied as if from a clone") {
  const Tensor line = random_tensors({{5000}}, 8)[0];
  const Tensor there = line.to(sim);
  there.narrow(0, 1, 4999).copy_(there.narrow(0, 0, 4999));
  const Tensor expected = line.clone();
  expected.narrow(0, 1, 4999).copy_(line.narrow(0, 0, 4999));
  CHECK(bitwise_equal(there, expected));
}

TEST_CASE("a function compiled for the host compiles again for a device") {
  auto add = compile([](const TensorList& list) { foreach_add_(list, 1.0); });
  const TensorList here({tensor({1.0})});
  const TensorList there({tensor({1.0}).to(sim)});
  add(here);
  add(there);
  add(here);
  add(there);
  CHECK(add.counters().compilations == 2);
  CHECK(here.tensors()[0].item() == 3);
  CHECK(there.tensors()[0].item() == 3);
}
