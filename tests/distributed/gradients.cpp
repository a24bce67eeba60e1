// How gradients travel, and which launch adds them.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "distributed/run_testing.h"
#include "fusebook/device/device_registry.h"
#include "fusebook/distributed/gradient_sums.h"
#include "fusebook/distributed/mpi_memory.h"
#include "fusebook/optim/all.h"
#include "support/tested_device.h"
#include "support/testing.h"

using namespace run_testing;
using testing::contains;
using testing::message_of;

namespace {

const Model tensors = {{{{3}, DType::float32},
                        {{100, 257}, DType::float32},
                        {{8193, 2}, DType::float32},
                        {{0}, DType::float32}}};

struct Training {
  explicit Training(const Model& of) : model(of), params(of.params()) {}

  void add(int step) { add_own_gradients(sharded, model, params, step); }
  // One of each rank.
  void add_one(int step) {
    model.add_gradients(params, step, given_ranks->rank());
    sharded.add_gradients();
  }
  std::int64_t own() const {
    std::int64_t elements = 0;
    for (const Tensor& each : sharded.own()) elements += each.numel();
    return elements;
  }

  Model model;
  std::vector<Tensor> params;
  Adam opt{params};
  ShardedOptimizer sharded{
      *given_ranks, opt, {.backend = Backend::interpreted}};
};

Run run_of(const Model& model) {
  Run run{model, [](std::vector<Tensor> params) {
            return std::make_unique<Adam>(std::move(params));
          }};
  run.steps = 4;
  return run;
}

void check_same(const Run& run) {
  const auto [params, norms] = run.alone();
  const auto [shared, shared_norms] = run.shared();
  CHECK(norms == shared_norms);
  CHECK(bitwise_equal(params, shared));
}

}  // namespace

TEST_CASE("the launch of the step adds the gradients of all ranks") {
  Training training(tensors);
  const int ranks = given_ranks->size();
  for (const bool divides : {false, true}) {
    for (int step = 0; step < 3; ++step) {
      training.add_one(step);
      ShardedStep options;
      if (divides) options.divide_by = double(ranks);
      const Counters before = training.sharded.counters();
      training.sharded.step(options);
      const Counters after = training.sharded.counters();
      CHECK(after.graph_breaks == 0);
      if (training.own() == 0) continue;
      const bool fits = ranks <= int(GradientSums::most_open);
      if (fits) CHECK(after.launches - before.launches == 1);
      // Three lists are read and written, and each gradient is read; a sum is
      // written, too.
      const int terms = fits ? ranks : 2;
      const int sum = ranks > 1 || divides ? 4 : 0;
      const auto steps =
          std::int64_t(8) * std::int64_t(training.sharded.own().size());
      CHECK(after.bytes_moved - before.bytes_moved ==
            training.own() * (24 + 4 * terms + sum) + 2 * steps);
    }
  }
}

TEST_CASE("where their norm is asked for, two launches do") {
  Training training(tensors);
  for (int step = 0; step < 3; ++step) {
    training.add_one(step);
    const Counters before = training.sharded.counters();
    training.sharded.step(
        {.divide_by = 3.0, .max_norm = 0.1, .skip_nonfinite = true});
    if (training.own() == 0) continue;
    const Counters after = training.sharded.counters();
    CHECK(after.launches - before.launches == 2);
    CHECK(after.graph_breaks == 0);
  }
}

TEST_CASE("other numbers to divide by compile nothing") {
  Training training(tensors);
  std::int64_t compilations = 0;
  for (int step = 0; step < 4; ++step) {
    training.add_one(step);
    training.sharded.step({.divide_by = step + 2.0});
    const std::int64_t now = training.sharded.counters().compilations;
    if (step > 0) CHECK(now == compilations);
    compilations = now;
  }
}

TEST_CASE("who keeps a gradient may change it, and finds it as it was") {
  Training training(tensors);
  Training other(tensors);
  for (int step = 0; step < 3; ++step) {
    std::vector<Tensor> kept;
    std::vector<Tensor> copies;
    other.add_one(step);
    training.model.add_gradients(training.params, step, given_ranks->rank());
    for (const Tensor& each : training.params) {
      kept.push_back(each.grad());
      copies.push_back(each.grad().clone());
    }
    training.sharded.add_gradients();
    if (step == 1) {
      for (Tensor& each : kept) each.fill_(NAN);
      for (Tensor& each : copies) each.fill_(NAN);
    }
    const ShardedStep options = {.divide_by = 3.0, .max_norm = 0.1};
    training.sharded.step(options);
    other.sharded.step(options);
    CHECK(bitwise_equal(kept, copies));
    CHECK(bitwise_equal(training.params, other.params));
  }
}

TEST_CASE("what nobody keeps stays where it is until the step, no longer") {
  Training training(tensors);
  training.model.add_gradients(training.params, 0, given_ranks->rank());
  std::vector<std::weak_ptr<Storage>> memory;
  for (const Tensor& each : training.params) {
    memory.emplace_back(each.grad().impl()->storage);
  }
  training.sharded.add_gradients();
  std::vector<bool> is_mine(memory.size());
  for (const Share& each : training.sharded.shares()) {
    if (each.owner == given_ranks->rank()) is_mine[each.param] = true;
  }
  // With more ranks, some are added before the step.
  const bool waits = given_ranks->size() <= int(GradientSums::most_open);
  for (std::size_t p = 0; p < memory.size(); ++p) {
    if (waits || !is_mine[p]) CHECK(memory[p].expired() == !is_mine[p]);
  }
  training.sharded.step();
  for (const auto& each : memory) CHECK(each.expired());
}

TEST_CASE("gradients over memory of others are copied, too") {
  Training training(tensors);
  Training other(tensors);
  other.add_one(0);
  std::vector<Tensor> kept;
  training.model.add_gradients(training.params, 0, given_ranks->rank());
  for (Tensor& each : training.params) {
    kept.push_back(each.grad().clone());
    void* const memory =
        kept.back().numel() == 0 ? nullptr : kept.back().data<float>();
    each.set_grad(from_blob(memory, each.shape()));
  }
  training.sharded.add_gradients();
  for (Tensor& each : kept) each.fill_(NAN);
  training.sharded.step();
  other.sharded.step();
  CHECK(bitwise_equal(training.params, other.params));
}

TEST_CASE("gradients rounded to 16 bits before they are sent") {
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    Run run = run_of(tensors);
    run.gradients_as = dtype;
    check_same(run);
    run.options = {.divide_by = micro_gradients, .max_norm = 0.5};
    check_same(run);
    run.model.kinds.push_back({{70, 3}, DType::bfloat16});
    run.model.kinds.push_back({{9000}, DType::float64});
    check_same(run);
    run.model.has_gradient = [](int, int micro, std::size_t param) {
      return micro % 2 == int(param) % 2;
    };
    check_same(run);
  }
}

TEST_CASE("rounding changes bits, and ends when it is told to") {
  const auto after = [](const std::vector<std::optional<DType>>& dtypes) {
    Training training(tensors);
    for (const auto& dtype : dtypes) training.sharded.send_gradients_as(dtype);
    training.add_one(0);
    training.sharded.step();
    return training.params;
  };
  const auto exact = after({});
  CHECK(bitwise_equal(exact, after({std::nullopt})));
  CHECK(bitwise_equal(exact, after({DType::bfloat16, std::nullopt})));
  CHECK(!bitwise_equal(exact, after({DType::bfloat16})));
}

TEST_CASE("what cannot be sent in 16 bits") {
  Training training(tensors);
  const auto refused = [&](DType dtype) {
    return message_of<Error>(
        [&] { training.sharded.send_gradients_as(dtype); });
  };
  CHECK(contains(refused(DType::float32), "float32 is not a dtype of 16 bits"));
  training.add_one(0);
  CHECK(contains(refused(DType::bfloat16), "have been sent"));
  training.sharded.step();
  training.sharded.send_gradients_as(DType::bfloat16);
  if (given_ranks->size() == 1) return;
  const auto own = given_ranks->rank() == 0 ? DType::bfloat16 : DType::float16;
  CHECK_THROWS_AS(training.sharded.send_gradients_as(own), RanksDisagree);
}

TEST_CASE("gradients on a GPU are rounded and sent, too") {
  const testing::DefaultDevice device(testing::tested_device());
  Run run = run_of(tensors);
  run.options = {.divide_by = micro_gradients, .max_norm = 0.5};
  check_same(run);
  run.gradients_as = DType::bfloat16;
  check_same(run);
}

TEST_CASE("where MPI reaches a GPU's memory, large messages skip the host") {
  const Device device = testing::tested_device();
  if (device.kind != Device::Kind::cuda_sim) return;
  const testing::DefaultDevice scope(device);
  const auto bytes_copied = [&](bool reaches) {
    set_mpi_reaches_gpus(reaches);
    const Gpu::Transfers before = gpu_of(device)->transfers();
    check_same(run_of(tensors));
    const Gpu::Transfers after = gpu_of(device)->transfers();
    set_mpi_reaches_gpus({});
    return after.to_host - before.to_host + after.to_device - before.to_device;
  };
  CHECK_FALSE(mpi_reaches(device));
  CHECK(mpi_reaches(cpu_device));
  const std::int64_t staged = bytes_copied(false);
  const std::int64_t straight = bytes_copied(true);
  // Who owns the large tensors gets, and who does not sends, all of them.
  if (given_ranks->size() == 1) CHECK(straight == staged);
  if (given_ranks->size() > 1) CHECK(straight < staged);
}
