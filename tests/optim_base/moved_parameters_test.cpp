// Parameters that get other memory between two steps.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/device/device_registry.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/optim/all.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/move_tensors.h"
#include "support/tested_device.h"
#include "support/testing.h"

using namespace fuse;
using testing::Random;

namespace {

std::vector<double> drawn(std::int64_t count, Random& random) {
  std::vector<double> values(std::size_t(count), 0.0);
  for (double& value : values) value = random.uniform(-1, 1);
  return values;
}

// Sizes with tails, one of them empty and one a single number.
std::vector<Tensor> make(std::uint64_t seed) {
  Random random(seed);
  std::vector<Tensor> made;
  for (const Shape& shape : {Shape{3, 5}, Shape{0}, Shape{700}, Shape{}}) {
    const std::int64_t numel = empty(shape).numel();
    made.push_back(tensor(drawn(numel, random)).view(shape).clone());
  }
  return made;
}

void give_gradients(const std::vector<Tensor>& params, std::uint64_t seed) {
  const std::vector<Tensor> grads = make(seed);
  for (std::size_t i = 0; i < params.size(); ++i) {
    Tensor(params[i]).set_grad(grads[i]);
  }
}

std::string message_of(const std::vector<Tensor>& params) {
  try {
    flatten_(params);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("flattened parameters are parts of one buffer") {
  const std::vector<Tensor> params = make(1);
  std::vector<double> all;
  for (const Tensor& param : params) {
    for (const double value : param.to_vector()) all.push_back(value);
  }
  Tensor buffer = flatten_(params);
  CHECK(buffer.shape() == Shape{15 + 0 + 700 + 1});
  CHECK(buffer.to_vector() == all);
  const auto* const begin = static_cast<const float*>(buffer.raw_data());
  CHECK(params[0].raw_data() == begin);
  CHECK(params[2].raw_data() == begin + 15);
  CHECK(params[3].raw_data() == begin + 715);
  CHECK(params[0].shape() == Shape{3, 5});
  buffer.fill_(2);
  CHECK(params[2].to_vector() == std::vector<double>(700, 2));
  CHECK(params[3].item() == 2);
  Tensor(params[3]).fill_(3);
  CHECK(buffer.to_vector().back() == 3);

  CHECK(flatten_({}).shape() == Shape{0});
  // A matrix in another order becomes one in row-major order.
  const Tensor matrix = tensor({1.0, 2.0, 3.0, 4.0, 5.0, 6.0}).view({2, 3}).t();
  CHECK(flatten_({matrix}).to_vector() ==
        std::vector<double>{1, 4, 2, 5, 3, 6});
  CHECK(matrix.strides() == Shape{2, 1});
  CHECK(matrix.is_contiguous());
}

TEST_CASE("steps go on in the new memory, without a recompile") {
  for (const bool compiled : {false, true}) {
    const std::vector<Tensor> params = make(1);
    const std::vector<Tensor> still = make(1);
    Adam moved(params, {.lr = 0.01});
    Adam reference(still, {.lr = 0.01});
    auto step = compile([&] { moved.step(); }, {.fullgraph = true});
    for (int k = 0; k < 6; ++k) {
      give_gradients(params, 10 + std::uint64_t(k));
      give_gradients(still, 10 + std::uint64_t(k));
      std::vector<double> before;
      std::vector<Tensor> old;
      if (k == 2) {
        for (const Tensor& param : params) old.push_back(param.detach());
        for (const Tensor& each : old) before.push_back(each.sum().item());
        flatten_(params);
      }
      if (k == 4) params[2].set_data(params[2].clone());
      compiled ? step() : moved.step();
      reference.step();
      CHECK(bitwise_equal(params, still));
      for (std::size_t i = 0; i < old.size(); ++i) {
        CHECK(old[i].sum().item() == before[i]);  // nothing writes there
      }
    }
    if (compiled) CHECK(step.counters().compilations == 1);
  }
}

TEST_CASE("lists follow their tensors, and the old memory is released") {
  auto owner = std::make_shared<std::vector<float>>(4, 1.0F);
  const std::weak_ptr<std::vector<float>> watch = owner;
  const Tensor own =
      Tensor::from_memory(owner->data(), {2, 2}, {1, 2}, float32, {}, owner);
  owner.reset();
  const TensorList list{own, tensor({5.0})};
  const TensorList twin{own};
  auto twice = compile([&] { foreach_mul_(list, 2.0); });
  twice();
  foreach_mul_(twin, 2.0);
  own.set_data(tensor({1.0, 2.0, 3.0, 4.0}).view({2, 2}));
  CHECK(watch.expired());
  CHECK(own.is_contiguous());
  twice();
  foreach_add_(twin, 1.0);
  CHECK(own.to_vector() == std::vector<double>{3, 5, 7, 9});
  CHECK(list[1].item() == 20);
}

TEST_CASE("groups that were apart and now share memory keep their order") {
  const Tensor a = tensor({1.0, 2.0});
  const Tensor b = tensor({3.0, 4.0});
  using Group = SGD::Group;
  SGD sgd(std::vector<Group>{Group({a}, {.lr = 1.0, .weight_decay = 0.5}),
                             Group({b}, {.lr = 0.5, .weight_decay = 0.5})},
          {});
  Tensor(a).set_grad(tensor({1.0, 1.0}));
  Tensor(b).set_grad(tensor({1.0, 1.0}));
  sgd.step();
  sgd.step();
  CHECK(a.to_vector() == std::vector<double>{-1.25, -1});
  b.set_data(a);
  sgd.step();  // p - (1 + p / 2), of which p - (1 + p / 2) / 2
  CHECK(a.to_vector() == std::vector<double>{-1.71875, -1.625});
}

TEST_CASE(
    "a move inside of a compiled function comes after what was recorded") {
  const Tensor a = tensor({1.0, 2.0});
  const Tensor old = a.detach();
  const Tensor other = tensor({5.0, 6.0});
  const TensorList list{a};
  auto both = compile([&] {
    foreach_add_(list, 1.0);
    a.set_data(other);
    foreach_mul_(list, 10.0);
  });
  both();
  CHECK(other.to_vector() == std::vector<double>{50, 60});
  CHECK(old.to_vector() == std::vector<double>{2, 3});
}

TEST_CASE("numbers that move are read where they are") {
  for (const Device& device : {cpu_device, testing::tested_device()}) {
    const Tensor lr = tensor(0.5, float64).to(device);
    const Tensor param = tensor({1.0}).to(device);
    Tensor(param).set_grad(tensor({1.0}).to(device));
    SGD sgd({param}, {.lr = lr});
    auto step = compile([&] { sgd.step(); });
    step();
    CHECK(param.item() == 0.5);
    lr.set_data(tensor(0.25, float64).to(device));
    step();
    CHECK(param.item() == 0.25);
    sgd.step();
    CHECK(param.item() == 0);
  }
}

TEST_CASE("numbers of groups that are updated together may move, too") {
  const Tensor rate = tensor(0.5, float64);
  const Tensor a = tensor({1.0});
  const Tensor b = tensor({2.0});
  Tensor(a).set_grad(tensor({1.0}));
  Tensor(b).set_grad(tensor({1.0}));
  using Group = SGD::Group;
  SGD sgd(std::vector<Group>{Group({a}, {.lr = rate}),
                             Group({b}, {.lr = tensor(0.25, float64)})},
          {});
  sgd.step();
  sgd.step();
  const Tensor before = rate.detach();
  rate.set_data(tensor(0.125, float64));
  sgd.step();
  CHECK(a.item() == -0.125);
  CHECK(b.item() == 1.25);
  CHECK(before.item() == 0.5);
}

TEST_CASE("what cannot be moved stays where it is") {
  const Tensor a = tensor({1.0, 2.0});
  void* const place = a.raw_data();
  CHECK(message_of({a, Tensor()}) == "flatten_: parameter 1 is undefined");
  CHECK(message_of({a, tensor({1.0}, float64)}) ==
        "flatten_: parameter 1 is float64 but parameter 0 is float32; flatten "
        "parameters of each dtype by themselves");
  CHECK(message_of({tensor({9.0}), a, a}) ==
        "flatten_: parameters 1 and 2 share memory; name each tensor once");
  CHECK(message_of({a, tensor({9.0}), a.narrow(0, 1, 1)}) ==
        "flatten_: parameters 0 and 2 share memory; name each tensor once");
  CHECK(message_of({a, tensor(1.0).expand({3})}).find("share memory") !=
        std::string::npos);
  const std::string gpu = to_string(testing::tested_device());
  CHECK(message_of({a, tensor({1.0}).to(testing::tested_device())}) ==
        "flatten_: parameter 1 is on " + gpu +
            " but parameter 0 is on cpu; flatten parameters of each device by "
            "themselves");
  CHECK_THROWS_WITH_AS(
      a.set_data(zeros({3})),
      "set_data: a tensor [2] of float32 on cpu cannot get the memory of one "
      "[3] of float32 on cpu",
      Error);
  CHECK_THROWS_AS(a.set_data(tensor({1.0, 2.0}, float64)), Error);
  CHECK_THROWS_AS(a.set_data(tensor(1.0).expand({2})), Error);
  CHECK(a.raw_data() == place);
  CHECK(a.to_vector() == std::vector<double>{1, 2});
}

TEST_CASE("interleaved columns do not share memory") {
  const Tensor matrix = tensor({1.0, 2.0, 3.0, 4.0, 5.0, 6.0}).view({3, 2});
  const std::vector<Tensor> columns = {matrix.select(1, 0),
                                       matrix.select(1, 1)};
  CHECK(flatten_(columns).to_vector() == std::vector<double>{1, 3, 5, 2, 4, 6});
}
