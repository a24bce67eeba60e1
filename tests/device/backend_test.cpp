#include "fusebook/device/backend.h"

#include <doctest/doctest.h>

#include <vector>

#include "fusebook/bench/benchmark.h"
#include "fusebook/compile/compile.h"
#include "fusebook/compile/cuda_graph.h"
#include "fusebook/device/cuda_kernel.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/nn/matmul.h"
#include "fusebook/optim/all.h"
#include "fusebook/tensor/random.h"
#include "support/step_testing.h"
#include "support/tested_device.h"
#include "support/testing.h"
#include "support/toy_backend.h"

using namespace fuse;
using namespace testing;
using step_testing::mixed_shapes;

namespace {

Tensor random_tensor(const Shape& shape, std::uint64_t seed,
                     DType dtype = DType::float32) {
  Generator generator(seed);
  return rand(shape, generator, dtype);
}

// Parameters with gradients, the same numbers on every device.
std::vector<Tensor> parameters(const Device& device) {
  std::vector<Tensor> params;
  for (const Shape& shape : mixed_shapes(9)) {
    const std::uint64_t seed = 2 * params.size();
    params.push_back(random_tensor(shape, seed + 1).to(device));
    params.back().set_grad(random_tensor(shape, seed + 2).to(device));
  }
  return params;
}

struct Trained {
  std::vector<Tensor> params;
  Counters counters;
};

Trained train(const Device& device, int steps) {
  Trained trained = {parameters(device), {}};
  Adam adam(trained.params, {.lr = 0.01, .weight_decay = 0.1});
  auto step = compile([&] { adam.step(); });
  for (int i = 0; i < steps; ++i) step();
  trained.counters = step.counters();
  return trained;
}

}  // namespace

// Must come first: nobody has asked for the toy.
TEST_CASE("a kind without a backend") {
  CHECK(device_kinds().size() == 3);
  const Device device = {Device::Kind::registered, 0};
  CHECK(message_of<Error>([&] { backend_of(device); }) ==
        "a device of kind `registered` has no backend; call register_backend "
        "first");
  CHECK_THROWS_AS(empty({1}, DType::float32, device), Error);
}

TEST_CASE("a backend that was added has names like those of the library") {
  const Device device = toy().device;
  CHECK(to_string(device) == "toy:0");
  CHECK(parse_device("toy") == device);
  CHECK(parse_device("toy:1") == Device{device.kind, 1});
  CHECK(device_of_memory(memory_code({device.kind, 5})) ==
        Device{device.kind, 5});
  CHECK(
      message_of<UsageError>([] { parse_device("toys"); }) ==
      "'toys' is not a device; use cpu, cuda, cuda:N, cuda-sim, toy or toy:N");
  CHECK(device_model({device.kind, 1}) == "toy number 1");
  CHECK(device_architecture(device).empty());
  CHECK(message_of<Error>([&] { require_device({device.kind, 2}); }) ==
        "there are two toys");
}

TEST_CASE("there is room for one more kind, and none for nothing") {
  static_cast<void>(toy());
  CHECK(device_kinds().size() == 4);
  CHECK(message_of<Error>(
            [] { register_backend(std::make_unique<ToyBackend>()); }) ==
        "register_backend: cannot register 'toy'; 'toy' is already registered");
  CHECK(message_of<Error>([] { register_backend(nullptr); }) ==
        "register_backend: the backend is null");
}

TEST_CASE("tensors move to memory that is not the host's and back") {
  const Device device = toy().device;
  for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16}) {
    const Tensor host = random_tensor({6, 9}, 7, dtype);
    const Tensor there = host.to(device);
    CHECK(there.device() == device);
    CHECK(std::memcmp(there.raw_data(), host.raw_data(), host.nbytes()) != 0);
    CHECK(bitwise_equal(there.cpu(), host));
    CHECK(bitwise_equal(there.clone().cpu(), host));
    CHECK(bitwise_equal(there.t().contiguous().cpu(), host.t().contiguous()));
    CHECK(there.to_vector() == host.to_vector());
    CHECK(there.sum().item() == host.sum().item());
    Tensor expected = host.clone();
    expected.slice(1, 0, 9, 2).fill_(2.5);
    Tensor part = there.slice(1, 0, 9, 2);
    part.fill_(2.5);
    CHECK(bitwise_equal(there.cpu(), expected));
    part.copy_(host.slice(1, 0, 9, 2));
    CHECK(bitwise_equal(there.cpu(), host));
  }
  CHECK(zeros({3}, DType::float32, device).to_vector() ==
        std::vector<double>{0, 0, 0});
  CHECK_THROWS_AS(zeros({1}, DType::float32, device).data<float>(), Error);
}

TEST_CASE("a large tensor is summed there as on the host") {
  const Tensor host = random_tensor({100, 1000}, 3);
  CHECK(host.to(toy().device).sum().item() == host.sum().item());
}

TEST_CASE("list operations run there one by one, and numbers come back") {
  const Device device = toy().device;
  const Tensor host = random_tensor({40}, 5);
  const TensorList here({host.clone()});
  const TensorList there({host.to(device)});
  CHECK(
      bitwise_equal(foreach_lerp(there, foreach_mul(there, 3.0), 0.3)[0].cpu(),
                    foreach_lerp(here, foreach_mul(here, 3.0), 0.3)[0]));
  const DefaultDevice chosen(device);
  Generator generator(3);
  CHECK(rand({2}, generator).device() == device);
  CHECK(scalars(2)[1].device() == device);
  CHECK(device_seconds() > 0);
}

TEST_CASE("a compiled Adam step there is the CPU's, bit by bit") {
  const int launches = toy().backend.counters.launches;
  const int copies = toy().backend.counters.copies_to_host;
  const Trained there = train(toy().device, 5);
  CHECK(toy().backend.counters.launches > launches);
  CHECK(toy().backend.counters.copies_to_host == copies);
  const Trained here = train(cpu_device, 5);
  for (std::size_t i = 0; i < here.params.size(); ++i) {
    CHECK(there.params[i].device() == toy().device);
    CHECK(bitwise_equal(there.params[i].cpu(), here.params[i]));
  }
  CHECK(there.counters.launches == 5);
  CHECK(there.counters == here.counters);
}

TEST_CASE("memory of its own leaves no choice of how a function runs") {
  for (const Backend backend :
       {Backend::compiled, Backend::interpreted, Backend::simulated}) {
    const Tensor there = zeros({4}, DType::float32, toy().device);
    const TensorList list({there});
    auto step = compile([&] { foreach_add_(list, 1.5); }, {.backend = backend});
    const int launches = toy().backend.counters.launches;
    step();
    CHECK(toy().backend.counters.launches == launches + 1);
    CHECK(there.to_vector() == std::vector<double>(4, 1.5));
  }
}

TEST_CASE("products are computed on the host where a device has none") {
  const Device device = toy().device;
  const Tensor a = random_tensor({3, 4}, 1);
  const Tensor b = random_tensor({4, 5}, 2);
  const Tensor expected = zeros({3, 5});
  matmul_into(expected, a, b, false);
  const Tensor product = zeros({3, 5}, DType::float32, device);
  matmul_into(product, a.to(device), b.to(device), false);
  CHECK(bitwise_equal(product.cpu(), expected));
}

TEST_CASE("what CUDA alone has is refused there") {
  const Device device = toy().device;
  CHECK(message_of<Error>([&] { CudaKernel(device, "", "nothing"); }) ==
        "'toy:0' is not a CUDA GPU; use cuda, cuda:N or cuda-sim");
  const TensorList list({zeros({4}, DType::float32, device)});
  auto step = compile([&] { foreach_add_(list, 1.0); });
  step();
  CHECK(message_of<Error>([&] {
          capture_graph(step);
        }).find("ran on toy:0, but CUDA graphs need a GPU") !=
        std::string::npos);
}

TEST_CASE("memory goes back to a backend with the last tensor") {
  const std::size_t before = toy().backend.memory.blocks();
  {
    const Tensor there = zeros({4}, DType::float32, toy().device);
    const Tensor view = there.narrow(0, 1, 2);
    CHECK(toy().backend.memory.blocks() == before + 1);
  }
  CHECK(toy().backend.memory.blocks() == before);
}
