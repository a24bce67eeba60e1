// Numbers in the memory of a GPU: kernels read them, nothing waits for them.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/device/device.h"
#include "fusebook/device/device_registry.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/lr_scheduler/all.h"
#include "fusebook/optim/all.h"
#include "fusebook/tensor/random.h"
#include "fusebook/tensor/tensor_list.h"
#include "support/step_testing.h"
#include "support/tested_device.h"

using namespace fuse;
using namespace testing;
using step_testing::mixed_shapes;

namespace {

const Device gpu = tested_device();
const std::string gpu_name = to_string(gpu);

// Parameters with gradients, the same numbers on every device.
std::vector<Tensor> parameters(const Device& device, std::uint64_t seed = 1) {
  Generator generator(seed);
  std::vector<Tensor> params;
  for (const Shape& shape : mixed_shapes(8)) {
    params.push_back(rand(shape, generator).to(device));
    params.back().set_grad(rand(shape, generator).to(device));
  }
  return params;
}

std::vector<Tensor> moved(const std::vector<Tensor>& tensors,
                          const Device& device) {
  std::vector<Tensor> there;
  for (const Tensor& each : tensors) there.push_back(each.to(device));
  return there;
}

std::vector<Tensor> random_tensors(std::uint64_t seed) {
  Generator generator(seed);
  std::vector<Tensor> tensors;
  for (const Shape& shape : mixed_shapes(8)) {
    tensors.push_back(rand(shape, generator));
  }
  return tensors;
}

Tensor number(double value, DType dtype = DType::float32) {
  return tensor(value, dtype).to(gpu);
}

// One way to make an optimizer whose numbers are 0-d tensors on a device.
struct Case {
  const char* name;
  std::function<std::unique_ptr<Optimizer>(
      const std::vector<Tensor>&, const std::function<Scalar(double)>&)>
      make;
};

template <class T, class Options>
std::unique_ptr<Optimizer> make(const std::vector<Tensor>& params,
                                const Options& options) {
  return std::make_unique<T>(params, options);
}

const std::vector<Case> cases = {
    {"Adam",
     [](const auto& params, const auto& n) {
       return make<Adam>(params, AdamOptions{.lr = n(0.01),
                                             .betas = {n(0.8), n(0.95)},
                                             .eps = n(1e-6),
                                             .weight_decay = n(0.1)});
     }},
    {"AdamW",
     [](const auto& params, const auto& n) {
       return make<AdamW>(params,
                          AdamWOptions{.lr = n(0.01), .weight_decay = n(0.1)});
     }},
    {"SGD",
     [](const auto& params, const auto& n) {
       return make<SGD>(params, SGDOptions{.lr = n(0.1), .momentum = n(0.9)});
     }},
    {"ASGD",
     [](const auto& params, const auto& n) {
       return make<ASGD>(params, ASGDOptions{.lr = n(0.1)});
     }},
    {"RMSprop",
     [](const auto& params, const auto& n) {
       return make<RMSprop>(params, RMSpropOptions{.lr = n(0.1)});
     }},
    {"NAdam", [](const auto& params, const auto& n) {
       return make<NAdam>(params, NAdamOptions{.lr = n(0.1)});
     }}};

// A few operations on two lists, a list of per-tensor numbers and five single
// ones: the same for the same seed, wherever the lists lie.
class RandomStep {
 public:
  RandomStep(std::uint64_t seed, const Device& device)
      : seed_(seed),
        x_(moved(random_tensors(seed), device), "x"),
        y_(moved(random_tensors(seed + 1), device), "y"),
        counts_(TensorList::per_tensor(
            scalars(x_.size(), DType::float64, device), "counts")) {
    foreach_fill_(counts_, 1.5);
    const std::array dtypes = {DType::float32, DType::float64, DType::bfloat16};
    for (const DType dtype : dtypes) {
      numbers_.push_back(
          tensor(0.1 * double(seed % 7) + 0.3, dtype).to(device));
    }
  }

  void run() {
    Random random(seed_);
    std::vector<Operand> values = {x_, y_, counts_, Scalar(0.7)};
    for (const Tensor& number : numbers_) values.emplace_back(Scalar(number));
    const auto here = std::source_location::current();
    for (int n = 0; n < 6; ++n) {
      const auto op = OpCode(random.below(op_count));
      std::vector<const Operand*> in;
      for (int k = 0; k < info(op).arity; ++k)
        in.push_back(&random.pick(values));
      values.push_back(apply(op, in, here));
      const Operand& result = values.back();
      if (!random.chance(0.5)) continue;
      const bool elements =
          result.is_list && result.list.impl()->rate == Rate::element;
      foreach_copy_(elements || random.chance(0.5) ? x_ : counts_, result);
    }
  }

  std::vector<Tensor> results() const {
    std::vector<Tensor> all;
    for (const TensorList& list : {x_, y_, counts_}) {
      for (const Tensor& each : list) all.push_back(each.cpu());
    }
    return all;
  }

 private:
  static Operand apply(OpCode op, const std::vector<const Operand*>& in,
                       std::source_location place) {
    const auto is_list = [](const Operand* each) { return each->is_list; };
    if (std::any_of(in.begin(), in.end(), is_list)) {
      return foreach_apply(op, in, place);
    }
    std::vector<const Scalar*> scalars;
    for (const Operand* each : in) scalars.push_back(&each->scalar);
    return scalar_apply(op, scalars, place);
  }

  std::uint64_t seed_;
  TensorList x_;
  TensorList y_;
  TensorList counts_;
  std::vector<Tensor> numbers_;
};

}  // namespace

TEST_CASE("random operations on lists and numbers, wherever they lie") {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    CAPTURE(seed);
    RandomStep host(seed, cpu_device);
    RandomStep eager(seed, gpu);
    RandomStep compiled(seed, gpu);
    auto step = compile([&] { compiled.run(); }, {.fullgraph = true});
    for (int i = 0; i < 2; ++i) {
      host.run();
      eager.run();
      step();
    }
    REQUIRE(bitwise_equal(eager.results(), host.results()));
    REQUIRE(bitwise_equal(compiled.results(), host.results()));
    CHECK(step.counters().recompiles == 0);
  }
}

TEST_CASE("hyper-parameters on the GPU give the bits of those in host memory") {
  for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16}) {
    for (const Case& each : cases) {
      CAPTURE(std::string(each.name));
      CAPTURE(std::string(name_of(dtype)));
      const auto here = parameters(cpu_device);
      const auto there = parameters(gpu);
      const auto eagerly = parameters(gpu);
      const auto cpu = each.make(
          here, [&](double value) { return Scalar(tensor(value, dtype)); });
      const auto on_gpu = [&](double value) {
        return Scalar(number(value, dtype));
      };
      const auto compiled = each.make(there, on_gpu);
      const auto eager = each.make(eagerly, on_gpu);
      auto step = compile([&] { compiled->step(); });
      for (int i = 0; i < 3; ++i) {
        for (const auto& optimizer : {&*cpu, &*compiled, &*eager}) {
          optimizer->group(0)["lr"].assign(0.02 * (i + 1));
        }
        cpu->step();
        const auto before = gpu_of(gpu)->transfers();
        step();
        const auto after = gpu_of(gpu)->transfers();
        eager->step();
        // What the first step makes, it fills.
        if (i > 0) CHECK(after.to_device == before.to_device);
        if (i > 0) CHECK(after.to_host == before.to_host);
        REQUIRE(bitwise_equal(there, here));
        REQUIRE(bitwise_equal(eagerly, here));
      }
      CHECK(step.counters().compilations == 1);
      CHECK(step.counters().launches == 3);
      CHECK(step.counters().uploads == 1);
      CHECK(step.counters().graph_breaks == 0);
    }
  }
}

TEST_CASE("the kernel names the numbers that it reads") {
  const auto params = parameters(gpu);
  Adam adam(params, {.lr = number(0.01)});
  auto step = compile([&] { adam.step(); });
  step();
  CHECK(contains(step.output_code(), "in.lr = load_scalar<float>(p["));
  CHECK(!contains(step.output_code(), "args["));
}

TEST_CASE("groups with numbers of their own share one body") {
  const auto build = [](const Device& device, const auto& lr) {
    const auto first = parameters(device, 1);
    const auto second = parameters(device, 2);
    auto adam = std::make_unique<Adam>(std::vector<Adam::Group>{
        {first, {.lr = lr(0.01)}}, {second, {.lr = lr(0.5)}}});
    std::vector<Tensor> all = first;
    all.insert(all.end(), second.begin(), second.end());
    return std::pair(all, std::move(adam));
  };
  auto [here, cpu] =
      build(cpu_device, [](double lr) { return Scalar(tensor(lr)); });
  auto [there, compiled] =
      build(gpu, [](double lr) { return Scalar(number(lr)); });
  auto step = compile([&, &optimizer = *compiled] { optimizer.step(); });
  for (int i = 0; i < 2; ++i) {
    cpu->step();
    step();
  }
  CHECK(bitwise_equal(there, here));
  CHECK(!contains(step.output_code(), "Body1"));
  CHECK(step.counters().launches == 2);
}

TEST_CASE("groups that share a number share one body, and load it once") {
  const auto build = [](const Device& device) {
    const Tensor lr = tensor(0.1).to(device);
    const auto first = parameters(device, 1);
    const auto second = parameters(device, 2);
    auto adam = std::make_unique<Adam>(
        std::vector<Adam::Group>{{first, {.lr = lr}}, {second, {.lr = lr}}});
    return std::pair(adam->parameters(), std::move(adam));
  };
  auto [here, cpu] = build(cpu_device);
  auto [there, compiled] = build(gpu);
  auto step = compile([&, &optimizer = *compiled] { optimizer.step(); });
  step();
  cpu->step();
  CHECK(bitwise_equal(there, here));
  const std::string code = step.output_code();
  CHECK(!contains(code, "Body1"));
  CHECK(code.find("load_scalar<float>") == code.rfind("load_scalar<float>"));
}

TEST_CASE("arithmetic on numbers that the GPU has, in the kernel") {
  const auto numbers = random_tensors(3);
  const TensorList x(moved(numbers, gpu), "x");
  const Tensor a = number(0.3);
  const Tensor b = number(-2, DType::float64);
  auto step = compile([&] {
    const Scalar sum = Scalar(a) * 3.0 + Scalar(b);
    foreach_mul_(x, sum / 7.0);
    foreach_copy_(x, foreach_add(x, Scalar(a)));
  });
  step();
  const double sum = double(0.3F) * 3.0 + -2.0;
  const TensorList expected(numbers);
  foreach_mul_(expected, sum / 7.0);
  foreach_add_(expected, double(0.3F));
  CHECK(bitwise_equal(x, expected));
  CHECK(step.counters().launches == 1);
  CHECK(step.counters().graph_breaks == 0);
}

TEST_CASE("a number alone may fill lists, and per-tensor lists") {
  const Tensor a = number(0.3);
  const auto there = moved(random_tensors(3), gpu);
  const TensorList x(there, "x");
  const TensorList counts =
      TensorList::per_tensor(scalars(there.size(), DType::float64, gpu));
  auto step = compile([&] {
    foreach_fill_(x, Scalar(a));
    foreach_fill_(counts, Scalar(a) + 1.0);
  });
  step();
  for (const Tensor& each : there) {
    for (const double value : each.to_vector()) CHECK(value == double(0.3F));
  }
  for (const Tensor& each : counts) CHECK(each.item() == double(0.3F) + 1.0);
}

TEST_CASE("a scheduler between two steps changes what the next one reads") {
  const auto here = parameters(cpu_device);
  const auto there = parameters(gpu);
  Adam cpu(here, {.lr = tensor(0.01)});
  Adam compiled(there, {.lr = number(0.01)});
  LinearLR cpu_schedule(cpu, {.total_iters = 5});
  LinearLR schedule(compiled, {.total_iters = 5});
  // Inside: the write waits for the kernel that still reads the old rate.
  auto step = compile([&] {
    compiled.step();
    schedule.step();
  });
  for (int i = 0; i < 5; ++i) {
    cpu.step();
    cpu_schedule.step();
    step();
    REQUIRE(bitwise_equal(there, here));
  }
  CHECK(to_string(compiled.group(0)["lr"]) == "tensor(0.0100)");
  CHECK(step.counters().compilations == 1);
  CHECK(step.counters().launches == 5);
  CHECK(step.counters().graph_breaks == 5);
}

TEST_CASE("a number that lies in what an operation writes is read first") {
  const TensorList list({number(2.0), number(3.0), tensor({4.0, 5.0}).to(gpu)},
                        "list");
  foreach_mul_(list, list[0]);
  CHECK(list[0].item() == 4);
  CHECK(list[1].item() == 6);
  CHECK(list[2].to_vector() == std::vector<double>{8, 10});
  auto step = compile([&] { foreach_mul_(list, list[1]); });
  step();
  CHECK(list[0].item() == 24);
  CHECK(list[1].item() == 36);
  CHECK(list[2].to_vector() == std::vector<double>{48, 60});
  step();
  CHECK(list[1].item() == 36 * 36);
  CHECK(step.counters().launches == 2);
  CHECK(step.counters().compilations == 1);
  CHECK(step.counters().graph_breaks == 0);
}

TEST_CASE("a number is read before a later operation writes over it") {
  const TensorList list({number(2.0), tensor({4.0, 5.0}).to(gpu)}, "list");
  const TensorList other({tensor({1.0, 2.0}).to(gpu)}, "other");
  auto step = compile([&] {
    const Scalar twice = Scalar(list[0]) * 2.0;
    foreach_mul_(other, list[0]);
    foreach_add_(list, 1.0);
    foreach_add_(other, twice);
  });
  for (int call = 1; call <= 3; ++call) step();
  // 2: 1 * 2 + 4; 3: 6 * 3 + 6; 4: 24 * 4 + 8.
  CHECK(other[0].to_vector() == std::vector<double>{104, 128});
  CHECK(list[0].item() == 5);
  CHECK(step.counters().graph_breaks == 3);
  CHECK(step.counters().launches == 6);
  CHECK(step.counters().compilations == 2);
}

TEST_CASE("one of several tensors, also where it is one of one") {
  const Tensor only = number(2.0);
  const TensorList list({only}, "list");
  auto step = compile([&] { foreach_mul_(list, only); });
  step();
  CHECK(only.item() == 4);
  foreach_mul_(list, only);
  CHECK(only.item() == 16);
}

TEST_CASE("numbers on a GPU and lists in host memory") {
  const TensorList list({tensor({1.0, 2.0})}, "list");
  const Tensor a = number(3.0);
  foreach_mul_(list, a);
  auto after = compile([&] { foreach_mul_(list, Scalar(a)); });
  after();
  CHECK(list[0].to_vector() == std::vector<double>{9, 18});
  auto before = compile([&] { foreach_mul_(list, Scalar(a) * 2.0); });
  CHECK(
      message_of<Error>([&] { before(); }) ==
      "a number is on " + gpu_name +
          " but list is on cpu; a launch runs on one device: move the tensors "
          "with to(), or compile a function for each");
}

TEST_CASE("what was computed on the GPU goes on after a graph break") {
  const TensorList list({tensor({1.0, 2.0}).to(gpu)}, "list");
  const Tensor a = number(3.0);
  double seen = 0;
  auto step = compile([&] {
    const Scalar twice = Scalar(a) * 2.0;
    foreach_mul_(list, twice);
    seen = list[0].to_vector()[1];
    foreach_add_(list, twice);
  });
  step();
  CHECK(seen == 12);
  CHECK(list[0].to_vector() == std::vector<double>{12, 18});
  CHECK(step.counters().graph_breaks == 1);
}

TEST_CASE("a number has the value that it had when it was computed with") {
  const auto run = [](const Device& device, bool compiled, bool fullgraph) {
    const Tensor p = tensor({1.0, 2.0}).to(device);
    const TensorList params({p}, "params");
    Tensor lr = tensor(0.5).to(device);
    const auto body = [&] {
      const Scalar rate = Scalar(lr) * -1.0;
      lr.fill_(lr.item() * 0.5);
      foreach_add_(params, rate);
    };
    auto step = compile(body, {.fullgraph = fullgraph});
    for (int i = 0; i < 2; ++i) compiled ? step() : body();
    CHECK(lr.item() == 0.125);
    CHECK(step.counters().graph_breaks ==
          (compiled && !device.is_cpu() ? 2 : 0));
    return p.to_vector();
  };
  const std::vector<double> expected = {1 - 0.5 - 0.25, 2 - 0.5 - 0.25};
  for (const Device& device : {cpu_device, gpu}) {
    CHECK(run(device, false, false) == expected);
    CHECK(run(device, true, false) == expected);
  }
  CHECK(contains(message_of<Error>([&] { run(gpu, true, true); }),
                 "a recorded tensor is modified from outside"));
}

TEST_CASE("the host may ask for what was computed, or keep it") {
  const TensorList list({tensor({1.0, 2.0}).to(gpu)}, "list");
  const Tensor a = number(3.0);
  Scalar kept = 0.0;
  auto step = compile([&] {
    const Scalar twice = Scalar(a) * 2.0;
    if (twice.value() > 5) foreach_mul_(list, twice);
    kept = twice + 1.0;
  });
  step();
  CHECK(kept.value() == 7);
  foreach_add_(list, kept);
  CHECK(list[0].to_vector() == std::vector<double>{13, 19});
  CHECK(step.counters().graph_breaks == 0);
}

TEST_CASE("what many numbers were computed from is computed once") {
  // Each goes twice into the next one: to follow every way would take 2^60 looks.
  constexpr int doublings = 60;
  const Tensor rate = number(1);
  const TensorList list = {tensor({3.0, 4.0}).to(gpu)};
  Scalar kept(0.0);
  auto step = compile([&] {
    Scalar sum(rate);
    for (int i = 0; i < doublings; ++i) sum = sum + sum;
    foreach_mul_(list, sum * std::ldexp(1.0, -doublings));
    kept = sum;
  });
  step();
  CHECK(kept.value() == std::ldexp(1.0, doublings));
  CHECK(list[0].to_vector() == std::vector<double>{3, 4});
}

TEST_CASE("what was recorded in vain is not known") {
  const TensorList list({tensor({1.0, 2.0}).to(gpu)}, "list");
  const Tensor a = number(3.0);
  Scalar kept = 0.0;
  auto step = compile([&] {
    kept = Scalar(a) * 2.0;
    foreach_mul_(list, kept);
    throw Error("enough");
  });
  CHECK(message_of<Error>([&] { step(); }) == "enough");
  const std::string message = message_of<Error>([&] { kept.value(); });
  CHECK(contains(message, "the number computed at "));
  CHECK(contains(message, "gpu_numbers_test.cpp:"));
  CHECK(contains(message, "ended with an exception before"));
}

TEST_CASE("a number that a recorded operation writes is read after it") {
  for (const Device& device : {cpu_device, gpu}) {
    const Tensor lr = tensor(2.0).to(device);
    const TensorList list({tensor({1.0}).to(device)}, "list");
    const TensorList rates({lr}, "rates");
    auto step = compile([&] {
      foreach_mul_(rates, 3.0);
      foreach_mul_(list, Scalar(lr) * 2.0);
    });
    step();
    CHECK(list[0].to_vector() == std::vector<double>{12});
  }
}

TEST_CASE("empty lists go with lists and numbers anywhere") {
  const TensorList list({tensor({1.0, 2.0}).to(gpu)}, "list");
  const TensorList none;
  const Tensor a = number(3.0);
  for (const bool first : {false, true}) {
    auto step = compile([&] {
      if (first) foreach_mul_(none, Scalar(a));
      foreach_mul_(list, Scalar(a));
      if (!first) foreach_mul_(none, 2.0);
    });
    step();
    CHECK(step.counters().launches == 1);
  }
  CHECK(list[0].to_vector() == std::vector<double>{9, 18});
}

TEST_CASE("a copy of a number does not keep the memory of the GPU") {
  const auto in_use = [] {
    return gpu_of(gpu)->memory().statistics().bytes_in_use;
  };
  const std::int64_t before = in_use();
  Tensor host;
  {
    const Tensor many = zeros({1 << 20}, DType::float32, gpu);
    const Tensor one = many.select(0, 7);
    foreach_add_({tensor({1.0}).to(gpu)}, Scalar(one));
    host = one.cpu();
    CHECK(in_use() >= before + (4 << 20));
  }
  CHECK(in_use() < before + (1 << 20));
  CHECK(host.item() == 0);
}

TEST_CASE("a number that becomes a tensor on the GPU is a recompile") {
  const auto params = parameters(gpu);
  const auto here = parameters(cpu_device);
  Adam adam(params, {.lr = 0.01});
  Adam cpu(here, {.lr = 0.01});
  auto step = compile([&] { adam.step(); });
  step();
  cpu.step();
  adam.group(0)["lr"] = Scalar(number(0.01, DType::float64));
  step();
  cpu.step();
  CHECK(bitwise_equal(params, here));
  CHECK(step.counters().compilations == 2);
}

TEST_CASE("past the limit of kernels a number is read for every operation") {
  const TensorList x({tensor({1.0, 2.0}).to(gpu), number(7.0)}, "x");
  const TensorList y({tensor({1.0, 2.0}), tensor(7.0)}, "y");
  const Tensor a = number(3.0);
  double moving = 0;
  auto step = compile(
      [&] {
        foreach_addcmul_(x, foreach_mul(x, Scalar(a) * 0.5), x, Scalar(moving));
      },
      {.policy = Policy::specialize});
  for (int i = 0; i < 12; ++i) {
    moving = 0.125 * i;
    step();
    foreach_addcmul_(y, foreach_mul(y, 1.5), y, Scalar(moving));
    REQUIRE(bitwise_equal(TensorList(moved(x.tensors(), cpu_device)), y));
  }
}
