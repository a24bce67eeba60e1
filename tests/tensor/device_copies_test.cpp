#include "fusebook/tensor/device_copies.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/device/device_registry.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/nn/cublas.h"
#include "fusebook/nn/loss.h"
#include "fusebook/nn/model.h"
#include "fusebook/optim/all.h"
#include "fusebook/reports/counters.h"
#include "support/fake_cublas.h"
#include "support/reduced.h"
#include "support/tested_device.h"
#include "support/testing.h"

using namespace fuse;
using namespace testing;

namespace {

const Device gpu = tested_device();

Tensor drawn(const Shape& shape, DType dtype, std::uint64_t seed) {
  Random random(seed);
  Tensor tensor = empty(shape, DType::float64, cpu_device);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    tensor.data<double>()[i] = reduced::any_value(dtype, random);
  }
  return tensor.to(dtype);
}

// Halves of the last place that one rounding and two treat differently, the
// ends of all ranges, and what is no number.
const std::vector<double> awkward = {0.0,
                                     -0.0,
                                     0.1,
                                     -1 / 3.0,
                                     1e300,
                                     -1e-300,
                                     65519.99,
                                     65520,
                                     0x1p-24,
                                     0x1.8p-25,
                                     0x1p-25,
                                     1 + 0x1p-11 + 0x1p-40,
                                     1 + 0x1p-8,
                                     1 + 0x1p-8 + 0x1p-50,
                                     0x1p-149,
                                     0x1.fffffep+127,
                                     std::numeric_limits<double>::infinity(),
                                     -std::numeric_limits<double>::infinity(),
                                     std::numeric_limits<double>::quiet_NaN()};

// What a piece of code has copied between the host and the device.
template <class Code>
Gpu::Transfers transfers_of(Code code) {
  const Gpu::Transfers before = gpu_of(gpu)->transfers();
  code();
  const Gpu::Transfers after = gpu_of(gpu)->transfers();
  return {after.to_device - before.to_device, after.to_host - before.to_host};
}

template <class Code>
bool stays_there(Code code) {
  const Gpu::Transfers moved = transfers_of(code);
  return moved.to_device == 0 && moved.to_host == 0;
}

// A change of all elements or some, on a device and on the CPU: the same bits,
// and nothing of it crosses.
template <class Change>
void check_change(const Tensor& before, Change change) {
  const Tensor here = before.clone();
  const Tensor there = before.to(gpu);
  change(here);
  CHECK(stays_there([&] { change(there); }));
  CHECK(bitwise_equal(there, here));
}

}  // namespace

TEST_CASE("filling on a device") {
  for (const DType dtype : reduced::all_dtypes) {
    const Tensor before = drawn({5, 7}, dtype, 1);
    for (const double value : awkward) {
      CAPTURE(name_of(dtype));
      CAPTURE(value);
      check_change(before, [&](Tensor x) { x.fill_(value); });
      check_change(before, [&](Tensor x) { x.t().fill_(value); });
      check_change(before, [&](Tensor x) {
        x.slice(1, 1, 7, 2).fill_(value);
        x.view({-1}).narrow(0, 1, 3).fill_(value);
        x.narrow(0, 0, 0).fill_(value);
      });
      Tensor made;
      CHECK(stays_there([&] { made = full({3, 5}, value, dtype, gpu); }));
      const double rounded = reduced::round(dtype, value);
      const auto values = made.to_vector();
      CHECK(values.size() == 15);
      CHECK(same_value(values[14], rounded));
    }
  }
  const Tensor row = zeros({1, 3}, DType::float32, gpu).expand({4, 3});
  CHECK(contains(message_of<Error>([&] { Tensor(row).fill_(1); }),
                 "share memory"));
}

TEST_CASE("copies within a device, of all dtypes and strides") {
  for (const DType from : reduced::all_dtypes) {
    const Tensor numbers = tensor(awkward, DType::float64).to(from);
    for (const DType to : reduced::all_dtypes) {
      CAPTURE(name_of(from));
      CAPTURE(name_of(to));
      const Tensor there = numbers.to(gpu);
      Tensor converted;
      CHECK(stays_there([&] { converted = there.to(to); }));
      CHECK(converted.device() == gpu);
      CHECK(bitwise_equal(converted, numbers.to(to)));
      // By the definition of the numbers.
      for (std::size_t i = 0; i < awkward.size(); ++i) {
        const double once = reduced::round(from, awkward[i]);
        CHECK(same_value(converted.to_vector()[i], reduced::round(to, once)));
      }
    }
  }
  // Strides make a kernel of another kind, whatever the dtypes.
  for (const auto& [from, to] : {std::pair(DType::float32, DType::float32),
                                 std::pair(DType::float64, DType::float16)}) {
    const Tensor source = drawn({6, 9}, from, 2);
    const Tensor there = source.to(gpu);
    check_change(drawn({6, 9}, to, 3), [&](const Tensor& x) {
      const Tensor& y = x.device().is_cpu() ? source : there;
      x.slice(0, 0, 6, 2).copy_(y.slice(0, 1, 6, 2));
      x.narrow(1, 1, 4).t().copy_(y.narrow(1, 2, 4).t());
      x.slice(1, 0, 9, 4).copy_(y.narrow(1, 8, 1).expand({6, 3}));
      x.narrow(0, 3, 0).copy_(y.narrow(0, 0, 0));
      x.t().copy_(y.view({9, 6}));
    });
  }
}

TEST_CASE("copies of views keep their order on a device") {
  const Tensor here = drawn({4, 5, 6}, DType::float32, 4);
  const Tensor there = here.to(gpu);
  const auto check = [&](auto view) {
    std::vector<Tensor> made;
    CHECK(stays_there([&] {
      made = {view(there).clone(), view(there).contiguous(),
              view(there).to(DType::float64)};
    }));
    CHECK(made[0].strides() == view(here).clone().strides());
    CHECK(made[1].is_contiguous());
    CHECK(made[2].strides() == view(here).to(DType::float64).strides());
    CHECK(bitwise_equal(made[0], view(here)));
    CHECK(bitwise_equal(made[1], view(here)));
    CHECK(bitwise_equal(made[2], view(here).to(DType::float64)));
  };
  check([](const Tensor& x) { return x.permute({2, 0, 1}); });
  check([](const Tensor& x) { return x.slice(2, 0, 6, 2); });
  check([](const Tensor& x) { return x.select(1, 3).t(); });
  check([](const Tensor& x) { return x.narrow(0, 1, 1).expand({2, 3, 5, 6}); });
  check([](const Tensor& x) { return x.narrow(0, 2, 0); });
}

TEST_CASE("overlapping copies on a device go as if from a clone") {
  const Tensor line = drawn({9000}, DType::float32, 5);
  check_change(line, [](const Tensor& x) {
    x.narrow(0, 1, 8999).copy_(x.narrow(0, 0, 8999));
    Tensor(x).copy_(x);
  });
  check_change(line, [](const Tensor& x) {
    Tensor square = x.view({-1}).narrow(0, 0, 8100).view({90, 90});
    square.copy_(square.t());
    x.slice(0, 0, 8998, 2).copy_(x.slice(0, 2, 9000, 2));
  });
}

TEST_CASE("between devices go the elements alone, in the smaller dtype") {
  const Tensor here = drawn({30, 8}, DType::float64, 6);
  const Tensor there = here.to(gpu);
  const auto part = [](const Tensor& x) { return x.slice(1, 0, 8, 2); };
  constexpr std::int64_t elements = 30 * 4;

  Tensor target = zeros({30, 4}, DType::float16, gpu);
  Gpu::Transfers moved = transfers_of([&] { target.copy_(part(here)); });
  CHECK(moved.to_device == elements * 2);
  CHECK(moved.to_host == 0);
  CHECK(bitwise_equal(target, part(here).to(DType::float16)));

  const Tensor wide = zeros({30, 8}, DType::float64, gpu);
  moved = transfers_of([&] { part(wide).copy_(target.cpu()); });
  CHECK(moved.to_device == elements * 2);
  CHECK(moved.to_host == elements * 2);
  CHECK(bitwise_equal(part(wide), target.to(DType::float64)));

  const Tensor host = zeros({30, 8}, DType::float32);
  moved = transfers_of([&] { part(host).copy_(part(there)); });
  CHECK(moved.to_device == 0);
  CHECK(moved.to_host == elements * 4);
  CHECK(bitwise_equal(part(host), part(here).to(DType::float32)));

  moved = transfers_of([&] { CHECK(part(there).to_vector().size() == 120); });
  CHECK(moved.to_host == elements * 8);
  moved = transfers_of([&] { part(there).cpu(); });
  CHECK(moved.to_host == elements * 8);
}

TEST_CASE("copies and fills are no launches, and are never recorded") {
  const Tensor x = drawn({50}, DType::float32, 7);
  const auto run = [&](const Device& device) {
    const TensorList list({x.to(device).clone()});
    const Tensor late = zeros({50}, DType::float64, device);
    Tensor filled = zeros({50}, DType::float32, device);
    const TensorList filled_list({filled});
    auto step = compile([&] {
      foreach_add_(list, 1.0);
      foreach_add_(filled_list, 1.0);
      Tensor(late).copy_(list[0]);
      filled.fill_(2.5);
      full({50}, 7, DType::float32, device);
      foreach_mul_(list, 2.0);
      foreach_add_(filled_list, 1.0);
    });
    step();
    CHECK(step.counters().launches == 2);
    CHECK(step.counters().graph_breaks == 1);
    return std::vector<Tensor>{list[0].cpu(), late.cpu(), filled.cpu()};
  };
  CHECK(bitwise_equal(run(gpu), run(cpu_device)));
  CHECK(run(gpu)[2].to_vector() == std::vector<double>(50, 3.5));

  const Counters before = process_counters();
  const Tensor there = x.to(gpu).slice(0, 0, 50, 2).contiguous();
  CHECK(there.to(DType::float64).sum().item() != 0);
  CHECK(process_counters() == before);
}

TEST_CASE("a step of training leaves its tensors on the device") {
  std::optional<Replaced> products;
  if (cublas_for(gpu) == nullptr) {
    if (gpu.kind != Device::Kind::cuda_sim) {
      MESSAGE("skipped: there is no cuBLAS");
      return;
    }
    products.emplace();
  }
  const DefaultDevice chosen(gpu);
  Generator generator(0);
  const Sequential model({Linear(6, 5, generator), Linear(5, 3, generator)});
  const Tensor input = rand({4, 6}, generator);
  const Tensor target = rand({4, 3}, generator);
  Adam adam(model.parameters(), {.lr = 0.01});
  auto update = compile([&] { adam.step(); });
  std::vector<double> losses;
  const auto train = [&] {
    adam.zero_grad();
    const Tensor loss = mse_loss(model(input), target);
    loss.backward();
    update();
    losses.push_back(loss.item());
  };
  train();  // kernels are compiled, states are made
  for (int i = 0; i < 3; ++i) {
    const Gpu::Transfers moved = transfers_of(train);
    CHECK(moved.to_host == sizeof(double));
    CHECK(moved.to_device == 0);
    CHECK(losses[losses.size() - 1] < losses[losses.size() - 2]);
  }
  const Gpu::Transfers moved = transfers_of([&] {
    adam.zero_grad(false);
    model(input).sum().backward();
    update();
  });
  CHECK(moved.to_host == sizeof(double));
  CHECK(moved.to_device == 0);
}
