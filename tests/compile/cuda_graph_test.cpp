// Steps captured in CUDA graphs: on the simulated GPU, or on the one that
// FUSEBOOK_TEST_DEVICE names.
#include "fusebook/compile/cuda_graph.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fusebook/checkpoint/checkpoint.h"
#include "fusebook/compile/compile.h"
#include "fusebook/cuda_sim/gpu_sim.h"
#include "fusebook/device/cuda_kernel.h"
#include "fusebook/device/device_registry.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/lr_scheduler/all.h"
#include "fusebook/nn/model.h"
#include "fusebook/optim/all.h"
#include "fusebook/tensor/random.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace testing;
using step_testing::mixed_shapes;

namespace {

const Device gpu = [] {
  const char* const name = std::getenv("FUSEBOOK_TEST_DEVICE");
  return parse_device(name == nullptr ? "cuda-sim" : name);
}();

// Parameters with gradients, the same numbers on every device.
std::vector<Tensor> parameters(const Device& device, std::uint64_t seed = 1) {
  Generator generator(seed);
  std::vector<Tensor> params;
  for (const Shape& shape : mixed_shapes(6)) {
    params.push_back(rand(shape, generator).to(device));
    params.back().set_grad(rand(shape, generator).to(device));
  }
  return params;
}

Tensor number(double value, DType dtype = DType::float32) {
  return tensor(value, dtype).to(gpu);
}

std::int64_t bytes_in_use() {
  return std::int64_t(gpu_of(gpu)->memory().statistics().bytes_in_use);
}

// One way to make an optimizer with a rate.
struct Case {
  const char* name;
  std::function<std::unique_ptr<Optimizer>(const std::vector<Tensor>&,
                                           const Scalar&)>
      make;
};

template <class T, class Options>
std::unique_ptr<Optimizer> make(const std::vector<Tensor>& params,
                                const Options& options) {
  return std::make_unique<T>(params, options);
}

const std::vector<Case> cases = {
    {"Adam",
     [](const auto& params, const Scalar& lr) {
       return make<Adam>(params, AdamOptions{.lr = lr, .weight_decay = 0.1});
     }},
    {"SGD",
     [](const auto& params, const Scalar& lr) {
       return make<SGD>(params, SGDOptions{.lr = lr, .momentum = 0.9});
     }},
    {"RAdam",
     [](const auto& params, const Scalar& lr) {
       return make<RAdam>(params, RAdamOptions{.lr = lr});
     }},
    {"NAdam", [](const auto& params, const Scalar& lr) {
       return make<NAdam>(params, NAdamOptions{.lr = lr});
     }}};

// Adam on the GPU with its rate there, called once.
struct Warm {
  explicit Warm(const Scalar& lr = number(0.01))
      : params(parameters(gpu)), adam(params, {.lr = lr}) {
    step();
  }
  std::vector<Tensor> params;
  Adam adam;
  Compiled<std::function<void()>> step =
      compile(std::function<void()>([this] { adam.step(); }));
};

// The same on the CPU, op by op: the oracle.
struct Oracle {
  Oracle()
      : params(parameters(cpu_device)), adam(params, {.lr = tensor(0.01)}) {
    adam.step();
  }
  std::vector<Tensor> params;
  Adam adam;
};

// After an error the function works, and so does the next capture of it.
void check_usable(Warm& warm) {
  warm.step();
  CudaGraph graph = capture_graph(warm.step);
  graph.replay();
  CHECK(graph.replays() == 1);
  CHECK_FALSE(gpu_of(gpu)->context().is_capturing());
}

template <class Function>
std::string refusal(Function& function) {
  return message_of<Error>([&] { capture_graph(function); });
}

}  // namespace

TEST_CASE("a replay has the bits of the step, whatever the rate is by then") {
  for (const Case& each : cases) {
    CAPTURE(each.name);
    const auto here = parameters(cpu_device);
    const auto replayed = parameters(gpu);
    const auto called = parameters(gpu);
    const auto cpu = each.make(here, tensor(0.01));
    const auto captured = each.make(replayed, number(0.01));
    const auto compiled = each.make(called, number(0.01));
    auto step = compile([&] { captured->step(); });
    auto twin = compile([&] { compiled->step(); });
    step();
    twin();
    cpu->step();
    CudaGraph graph = capture_graph(step);
    REQUIRE(bitwise_equal(replayed, here));  // nothing has run
    for (int i = 0; i < 7; ++i) {
      for (const auto& optimizer : {&*cpu, &*captured, &*compiled}) {
        optimizer->group(0)["lr"].assign(0.02 * (i + 1));
      }
      graph.replay();
      twin();
      cpu->step();
      REQUIRE(bitwise_equal(replayed, here));
      REQUIRE(bitwise_equal(called, here));
    }
    // The state went on too: calls and replays take turns.
    step();
    graph.replay();
    cpu->step();
    cpu->step();
    CHECK(bitwise_equal(replayed, here));
  }
}

TEST_CASE("a replay counts as a call with one launch") {
  Warm warm;
  const Counters before = warm.step.counters();
  const Counters all_before = process_counters();
  const std::int64_t bytes = before.bytes_moved;  // of one step
  CudaGraph graph = capture_graph(warm.step);
  CHECK(warm.step.counters() == before);
  CHECK(graph.replays() == 0);
  for (int i = 0; i < 3; ++i) graph.replay();
  const Counters expected = {.launches = 3, .bytes_moved = 3 * bytes};
  CHECK(warm.step.counters() - before == expected);
  CHECK(process_counters() - all_before == expected);
  CHECK(graph.replays() == 3);
  CHECK_NOTHROW(assert_fused(warm.step));
  CHECK(contains(warm.step.report(), "1 launch in the last call"));
  // What the host counts is told of the capture, not of replays.
  CHECK(warm.adam.steps() == 2);
  CHECK(warm.adam.state(warm.params[0], "step").item() == 4);
}

TEST_CASE("plain numbers that never moved may differ between groups") {
  const auto build = [](const Device& device, const auto& lr) {
    const auto first = parameters(device, 1);
    const auto second = parameters(device, 2);
    auto adam = std::make_unique<AdamW>(
        std::vector<AdamW::Group>{{first, {.lr = lr(), .weight_decay = 0.1}},
                                  {second, {.lr = lr(), .weight_decay = 0.3}}});
    std::vector<Tensor> all = first;
    all.insert(all.end(), second.begin(), second.end());
    return std::pair(all, std::move(adam));
  };
  auto [here, cpu] = build(cpu_device, [] { return tensor(0.01); });
  auto [there, adam] = build(gpu, [] { return number(0.01); });
  auto step = compile([&, &optimizer = *adam] { optimizer.step(); });
  step();
  CudaGraph graph = capture_graph(step);
  graph.replay();
  graph.replay();
  for (int i = 0; i < 3; ++i) cpu->step();
  CHECK(bitwise_equal(there, here));
}

TEST_CASE("a function with arguments is captured for those it is given") {
  Warm first;
  Warm second;
  auto step = compile([](Adam& adam) { adam.step(); });
  step(first.adam);
  step(second.adam);
  // One table a kernel: the last call's.
  CHECK(contains(message_of<Error>([&] { capture_graph(step, first.adam); }),
                 "its tensors are not those of its last call"));
  CudaGraph graph = capture_graph(step, second.adam);
  step(first.adam);
  CudaGraph other = capture_graph(step, first.adam);
  graph.replay();
  other.replay();
  other.replay();
  graph.replay();
  Oracle oracle;
  for (int i = 0; i < 3; ++i) oracle.adam.step();
  CHECK(bitwise_equal(second.params, oracle.params));
  oracle.adam.step();
  CHECK(bitwise_equal(first.params, oracle.params));
}

TEST_CASE("a scheduler outside moves what the next replay reads") {
  Warm warm;
  Oracle oracle;
  LinearLR schedule(warm.adam, {.total_iters = 5});
  LinearLR its_schedule(oracle.adam, {.total_iters = 5});
  warm.step();
  oracle.adam.step();
  CudaGraph graph = capture_graph(warm.step);
  for (int i = 0; i < 6; ++i) {
    schedule.step();
    its_schedule.step();
    graph.replay();
    oracle.adam.step();
    REQUIRE(bitwise_equal(warm.params, oracle.params));
  }
}

TEST_CASE("a scheduler inside cannot be captured") {
  Warm warm;
  ExponentialLR schedule(warm.adam, {.gamma = 0.5});
  auto step = compile([&] {
    warm.adam.step();
    schedule.step();
  });
  step();
  const std::string message = refusal(step);
  CHECK(contains(message, "a copy to the host"));
  CHECK(contains(message, "do that outside the step"));
  check_usable(warm);
}

TEST_CASE("a function that was never called is not ready") {
  Warm warm;
  auto step = compile([&] { warm.adam.step(); }, {.name = "update"});
  const std::string message = refusal(step);
  CHECK(contains(message, "function update in "));
  CHECK(contains(message, "cuda_graph_test.cpp:"));
  CHECK(
      contains(message, "has not launched anything yet: call it once before"));
  auto idle = compile([] {});
  idle();
  CHECK(contains(refusal(idle), "has not launched anything yet"));
  check_usable(warm);
}

TEST_CASE("what would have to be compiled is named") {
  Warm warm(number(0.01));
  warm.adam.group(0)["eps"].assign(1e-3);
  CHECK(contains(refusal(warm.step),
                 "cannot be captured before it is compiled for this call: "
                 "param_groups[0][\"eps\"] was 1e-08 and now is 0.001; call it "
                 "once more first"));
  bool more = false;
  const TensorList list(warm.params, "params");
  auto step = compile([&] {
    foreach_mul_(list, 2.0);
    if (more) foreach_neg_(list);
  });
  step();
  more = true;
  CHECK(contains(refusal(step), "the recorded operations differ: operation "));
  CHECK(contains(refusal(step), "; call it once more first"));
  step();
  CHECK_NOTHROW(capture_graph(step));
}

TEST_CASE("a rate in host memory is named") {
  Warm warm(tensor(0.01));
  const std::string message = refusal(warm.step);
  CHECK(contains(message, "function step in "));
  CHECK(contains(message,
                 ": a graph would freeze param_groups[0][\"lr\"] at 0.01, a "
                 "tensor in host memory; make it a tensor on the GPU, "
                 "tensor(0.01).to(device), which replays read"));
  warm.adam.group(0)["lr"] = Scalar(tensor(0.1, DType::float64));
  warm.step();
  CHECK(contains(refusal(warm.step), "[\"lr\"] at 0.1, a tensor in host"));
  warm.adam.group(0)["lr"] = Scalar(number(0.25));
  check_usable(warm);
}

TEST_CASE("a number in host memory without a name has a place") {
  Warm warm;
  const TensorList list(warm.params, "params");
  const Tensor factor = tensor(0.5);
  auto step = compile([&] { foreach_mul_(list, factor); });
  step();
  const std::string message = refusal(step);
  CHECK(contains(message, "cuda_graph_test.cpp:"));
  CHECK(contains(message, " at 0.5, a tensor in host memory"));
}

TEST_CASE("a plain number that has moved is named, and not its companions") {
  Warm warm(0.25);
  CHECK_NOTHROW(capture_graph(warm.step));  // it is part of the code
  warm.adam.group(0)["lr"].assign(0.5);
  warm.step();  // all hyper-parameters are inputs from now on
  const std::string message = refusal(warm.step);
  CHECK(contains(message,
                 "a graph would freeze param_groups[0][\"lr\"] at 0.5, a plain "
                 "number that became an input because numbers of this function "
                 "have changed"));
  CHECK(contains(message, "compile the function again"));
  // With the rate on the GPU, the others are still inputs of this function.
  warm.adam.group(0)["lr"] = Scalar(number(0.5));
  warm.step();
  CHECK(contains(refusal(warm.step), "param_groups[0][\"betas\"][0]"));
  auto anew = compile([&] { warm.adam.step(); });
  anew();
  CHECK_NOTHROW(capture_graph(anew));
}

TEST_CASE("a plain number that is known to move is named before it has") {
  Warm warm(0.25);
  warm.adam.group(0)["lr"].set_moves();
  auto step = compile([&] { warm.adam.step(); });
  step();
  CHECK(contains(refusal(step), "param_groups[0][\"lr\"]"));
}

TEST_CASE("a plain number with a scheduler is named before it has moved") {
  const auto attached = [](const auto& attach, const char* name) {
    Warm warm(0.25);
    SGD sgd(warm.params, {.lr = 0.25, .momentum = 0.5});
    auto step = compile([&] { sgd.step(); }, {.policy = Policy::specialize});
    step();
    CHECK_NOTHROW(capture_graph(step));
    const auto scheduler = attach(sgd);
    step();
    const std::string message = refusal(step);
    CAPTURE(message);
    CHECK(contains(message, "a graph would freeze param_groups[0][\""));
    CHECK(contains(message, name));
    CHECK(contains(message, ", a plain number with a scheduler; make it a"));
    sgd.group(0)["lr"] = Scalar(number(0.25));
    step();
    return refusal(step);
  };
  const auto step_lr = [](SGD& sgd) {
    return std::make_unique<StepLR>(sgd, StepLROptions{.step_size = 30});
  };
  CHECK(attached(step_lr, "[\"lr\"] at 0.25") == "no error");
  const auto plateau = [](SGD& sgd) {
    return std::make_unique<ReduceLROnPlateau>(sgd);
  };
  CHECK(attached(plateau, "[\"lr\"] at 0.25") == "no error");
  const auto one_cycle = [](SGD& sgd) {
    return std::make_unique<OneCycleLR>(
        sgd, OneCycleLROptions{.max_lr = 0.5, .total_steps = 9});
  };
  CHECK(contains(attached(one_cycle, "[\"momentum\"] at 0.95"),
                 "param_groups[0][\"momentum\"]"));
}

TEST_CASE("rates of groups in host memory are named too") {
  const auto first = parameters(gpu, 1);
  const auto second = parameters(gpu, 2);
  Adam adam(std::vector<Adam::Group>{{first, {.lr = number(0.01)}},
                                     {second, {.lr = tensor(0.5)}}});
  auto step = compile([&] { adam.step(); });
  step();
  CHECK(contains(refusal(step), "param_groups[1][\"lr\"] at 0.5"));
  Adam both(std::vector<Adam::Group>{{first, {.lr = tensor(0.25)}},
                                     {second, {.lr = tensor(0.5)}}});
  auto columns = compile([&] { both.step(); });
  columns();
  CHECK(contains(refusal(columns), "param_groups[0][\"lr\"] at 0.25"));
}

TEST_CASE("what a replay would not repeat is refused") {
  Warm warm;
  Tensor target = zeros({4}, DType::float32, gpu);
  const Tensor source = full({4}, 3, DType::float32, gpu);
  const TensorList list(warm.params, "params");
  std::function<void()> also;
  TensorList kept;
  auto step = compile([&] {
    foreach_mul_(list, 1.5);
    if (also) also();
  });
  step();
  const auto refused = [&](auto what, const char* text) {
    also = what;
    const std::string message = refusal(step);
    also = nullptr;
    CAPTURE(message);
    CHECK(contains(message, text));
    CHECK_FALSE(gpu_of(gpu)->context().is_capturing());
    CHECK_NOTHROW(capture_graph(step));
  };
  refused([&] { static_cast<void>(list[0].to_vector()); },
          "cannot be captured as one launch: a tensor is read before it is "
          "computed, after the operation at ");
  refused([&] { Tensor(list[0]).fill_(1); },
          "a recorded tensor is modified from outside");
  refused([&] { static_cast<void>(target.to_vector()); }, "a copy to the host");
  refused([&] { target.copy_(source); },
          "outside list operations, which a replay would not repeat");
  refused([&] { target.fill_(0); }, "writes to a tensor on ");
  // Past the tensors, on the device itself.
  void* const bytes = target.raw_data();
  const auto device = gpu_of(gpu);
  refused([&] { device->fill_bytes(bytes, 1, 16); }, "to fill memory");
  refused([&] { device->copy_on_device(bytes, source.raw_data(), 16); },
          "a copy within the device");
  const CudaKernel kernel(
      gpu, "extern \"C\" __global__ void idle(int x) { (void)x; }\n", "idle");
  refused([&] { kernel.launch({}, {}, 1); }, "a separate launch");
  refused([&] { zeros({4}, DType::float32, gpu); }, "bytes of new memory");
  refused([&] { kept = foreach_neg(list); }, "bytes of new memory");
  CHECK(target.to_vector() == std::vector<double>(4, 0));
  also = [] { throw std::runtime_error("mine"); };
  CHECK_THROWS_WITH_AS(capture_graph(step), "mine", std::runtime_error);
  check_usable(warm);
}

TEST_CASE("what other threads do while a step is captured is not in it") {
  const TensorList list({tensor({1.0, 2.0}).to(gpu)}, "captured");
  Tensor theirs = tensor({1.0, 2.0}).to(gpu);
  const TensorList other({theirs}, "other");
  const Tensor source = tensor({5.0, 6.0}).to(gpu);
  Tensor ones = zeros({2}, DType::float32, gpu);
  Tensor zeroed = full({2}, 4, DType::float32, gpu);
  Tensor copied = zeros({2}, DType::float32, gpu);
  auto warm = compile([&] { foreach_add_(other, 1.0); });
  warm();
  Tensor sent;
  std::optional<CudaGraph> their_graph;
  std::vector<double> seen;
  const auto work = [&] {
    warm();
    ones.fill_(1);
    zeroed.fill_(0);
    copied.copy_(source);
    sent = tensor({7.0, 8.0}).to(gpu);
    foreach_mul_(TensorList({sent}), 2.0);
    compile([&] { foreach_neg_(TensorList({sent})); })();
    their_graph = capture_graph(warm);
    seen = theirs.to_vector();
  };
  const auto check_theirs = [&](std::vector<double> expected) {
    CHECK(theirs.to_vector() == expected);
    CHECK(ones.to_vector() == std::vector<double>{1, 1});
    CHECK(zeroed.to_vector() == std::vector<double>{0, 0});
    CHECK(copied.to_vector() == std::vector<double>{5, 6});
    CHECK(sent.to_vector() == std::vector<double>{-14, -16});
  };
  bool meanwhile = false;
  std::string message = "it did not run";
  auto step = compile([&] {
    foreach_mul_(list, 2.0);
    if (!meanwhile) return;
    std::thread([&] { message = message_of<Error>(work); }).join();
  });
  step();
  meanwhile = true;
  CudaGraph graph = capture_graph(step);
  CHECK(message == "no error");
  CHECK(seen == std::vector<double>{3, 4});
  check_theirs({3, 4});
  CHECK(list[0].to_vector() == std::vector<double>{2, 4});
  graph.replay();
  check_theirs({3, 4});
  CHECK(list[0].to_vector() == std::vector<double>{4, 8});
  their_graph->replay();
  check_theirs({4, 5});
  CHECK(list[0].to_vector() == std::vector<double>{4, 8});
}

TEST_CASE("what other threads launch waits while the device captures") {
  const auto device = gpu_of(gpu);
  const TensorList other({tensor({1.0, 2.0}).to(gpu)}, "other");
  auto warm = compile([&] { foreach_add_(other, 1.0); });
  warm();
  Tensor ones = zeros({2}, DType::float32, gpu);
  Tensor zeroed = full({2}, 4, DType::float32, gpu);
  Tensor sent;
  std::vector<std::future<void>> all;
  const auto start = [&](auto work) {
    all.push_back(std::async(std::launch::async, work));
  };
  GpuCapture capture(device);
  start([&] { warm(); });
  start([&] { ones.fill_(1); });
  start([&] { zeroed.fill_(0); });
  start([&] { sent = tensor({7.0, 8.0}).to(gpu); });
  start([&] { device->memory().empty_cache(); });
  start([&] { device->synchronize(); });
  // On a stream of the simulated device they would be over within this time.
  for (const auto& each : all) {
    CHECK(each.wait_for(std::chrono::milliseconds(20)) ==
          std::future_status::timeout);
  }
  const auto graph = capture.finish();
  for (auto& each : all) CHECK_NOTHROW(each.get());
  graph->launch();
  CHECK(other[0].to_vector() == std::vector<double>{3, 4});
  CHECK(ones.to_vector() == std::vector<double>{1, 1});
  CHECK(zeroed.to_vector() == std::vector<double>{0, 0});
  CHECK(sent.to_vector() == std::vector<double>{7, 8});
}

TEST_CASE("captures in a thread lose no step of another one") {
  const TensorList list({tensor({1.0, 2.0}).to(gpu)}, "captured");
  const TensorList other({zeros({2}, DType::float32, gpu)}, "other");
  auto step = compile([&] { foreach_neg_(list); });
  auto count = compile([&] { foreach_add_(other, 1.0); });
  step();
  count();
  std::atomic<bool> is_over = false;
  double counted = 1;
  std::thread thread([&] {
    do {
      count();
      ++counted;
    } while (!is_over);
  });
  for (int i = 0; i < 50; ++i) capture_graph(step).replay();
  is_over = true;
  thread.join();
  CHECK(list[0].to_vector() == std::vector<double>{-1, -2});
  CHECK(other[0].to_vector() == std::vector<double>(2, counted));
}

TEST_CASE("lists and numbers that are made anew in each call can be captured") {
  const Tensor param = tensor({1.0, 2.0}).to(gpu);
  const Tensor rates = tensor({3.0, 0.5}).to(gpu);
  const Tensor matrix = tensor({1.0, 2.0, 3.0, 4.0}).view({2, 2}).to(gpu);
  auto step = compile([&] {
    foreach_mul_(TensorList({param}), Scalar(rates.select(0, 1)));
    foreach_neg_(TensorList({matrix.t()}));
  });
  for (int i = 0; i < 5; ++i) step();
  CHECK(step.counters().uploads == 1);
  CudaGraph graph = capture_graph(step);
  CHECK(param.to_vector() == std::vector<double>{1.0 / 32, 2.0 / 32});
  graph.replay();
  CHECK(param.to_vector() == std::vector<double>{1.0 / 64, 2.0 / 64});
  CHECK(matrix.to_vector() == std::vector<double>{1, 2, 3, 4});
  step();
  CHECK(step.counters().uploads == 1);
}

TEST_CASE("values beyond the limit of kernels run eagerly, and it says so") {
  const TensorList list({tensor({1.0, 2.0}).to(gpu)}, "list");
  double factor = 1;
  auto step = compile([&] { foreach_mul_(list, factor); },
                      {.policy = Policy::specialize});
  for (std::size_t i = 0; i <= specialization_limit; ++i, factor += 1) step();
  const std::string message = refusal(step);
  CHECK(contains(message, "cuda_graph_test.cpp:"));
  CHECK(contains(message,
                 "it always runs eagerly, because Policy::specialize allows at "
                 "most"));
  CHECK_FALSE(contains(message, "once more"));
  factor = 2;  // has a kernel
  CHECK_NOTHROW(capture_graph(step));
}

TEST_CASE("only a GPU has graphs, and one of them a graph") {
  Oracle cpu;
  auto step = compile([](Adam& adam) { adam.step(); });
  step(cpu.adam);
  CHECK(contains(message_of<Error>([&] { capture_graph(step, cpu.adam); }),
                 "ran on the CPU, but CUDA graphs need a GPU"));
  Warm warm;
  step(warm.adam);
  CHECK(contains(message_of<Error>([&] { capture_graph(step, cpu.adam); }),
                 "was last called on " + to_string(gpu) +
                     ", but is being captured with tensors on cpu"));
  auto both = compile([&] {
    cpu.adam.step();
    warm.adam.step();
  });
  CHECK(contains(message_of<Error>([&] { both(); }),
                 "a launch runs on one device"));
  CHECK_NOTHROW(capture_graph(step, warm.adam));
}

TEST_CASE("a call that does nothing leaves nothing to replay") {
  Warm warm;
  const TensorList list(warm.params, "params");
  bool idle = false;
  auto step = compile([&] {
    if (!idle) foreach_mul_(list, 2.0);
  });
  step();
  idle = true;
  CHECK(contains(refusal(step), "there is nothing to replay"));
  idle = false;
  CHECK_NOTHROW(capture_graph(step));
}

TEST_CASE("neither captures nor replays go into a recording") {
  Warm warm;
  CudaGraph graph = capture_graph(warm.step);
  const auto inside = [&](auto action) {
    auto outer = compile([&] { action(); });
    return message_of<Error>([&] { outer(); });
  };
  CHECK(contains(inside([&] { graph.replay(); }),
                 "CudaGraph::replay was called inside a compiled function"));
  CHECK(contains(inside([&] { capture_graph(warm.step); }),
                 "capture_graph was called inside a compiled function"));
  CHECK(graph.replays() == 0);
  auto nested = compile([&] { capture_graph(warm.step); });
  CHECK(contains(refusal(nested), "has not launched anything yet"));
  check_usable(warm);
}

TEST_CASE("gradients that stay in place are read anew") {
  Generator generator(3);
  set_default_device(gpu);
  const Linear captured(5, 3, generator);
  const Linear called = captured.clone();
  const Tensor input = rand({4, 5}, generator);
  set_default_device(cpu_device);
  SGD sgd(captured.parameters(), {.lr = number(0.1)});
  SGD twin(called.parameters(), {.lr = number(0.1)});
  auto step = compile([&] {
    sgd.step();
    sgd.zero_grad(false);
  });
  std::optional<CudaGraph> graph;
  for (int i = 0; i < 4; ++i) {
    for (const Linear* model : {&captured, &called}) {
      Tensor loss = (*model)(input).sum();
      loss.backward();
    }
    if (graph) {
      graph->replay();
    } else {
      step();
      graph = capture_graph(step);
    }
    twin.step();
    twin.zero_grad();
    REQUIRE(bitwise_equal(captured.parameters(), called.parameters()));
  }
  CHECK(captured.bias().grad().to_vector() == std::vector<double>(3, 0));
}

TEST_CASE("a replay goes on with the gradients that it was captured with") {
  Warm warm;
  Oracle oracle;
  CudaGraph graph = capture_graph(warm.step);
  std::vector<Tensor> old;
  for (Tensor& each : warm.params) {
    old.push_back(each.grad());
    each.set_grad(zeros(each.shape(), DType::float32, gpu));
  }
  old.clear();  // the graph has them
  graph.replay();
  oracle.adam.step();
  CHECK(bitwise_equal(warm.params, oracle.params));
  CHECK(contains(refusal(warm.step),
                 "its tensors are not those of its last call"));
  check_usable(warm);
}

TEST_CASE("a checkpoint is loaded into what the graph reads") {
  const jit_testing::TempDir folder;
  const std::string file = folder.path() + "/adam.safetensors";
  Warm warm;
  Oracle oracle;
  warm.step();
  oracle.adam.step();
  save_checkpoint(file, warm.adam);
  CudaGraph graph = capture_graph(warm.step);
  warm.adam.group(0)["lr"].assign(0.5);
  graph.replay();
  graph.replay();
  load_checkpoint(file, warm.adam);
  graph.replay();
  oracle.adam.step();
  CHECK(bitwise_equal(warm.params, oracle.params));
}

TEST_CASE("a graph keeps what it uses, and gives it back") {
  gpu_of(gpu)->forget_modules();
  const std::int64_t before = bytes_in_use();
  {
    Oracle oracle;
    std::optional<CudaGraph> graph;
    Tensor param;
    {
      Warm warm;
      param = warm.params[5];
      graph = capture_graph(warm.step);
    }
    gpu_of(gpu)->forget_modules();
    const auto others = parameters(gpu, 2);  // would get the memory
    graph->replay();
    oracle.adam.step();
    CHECK(bitwise_equal(param, oracle.params[5]));
    CHECK(bitwise_equal(others, parameters(cpu_device, 2)));
  }
  CHECK(bytes_in_use() == before);
}

TEST_CASE("a graph moves, and leaves an empty one behind") {
  Warm warm;
  Oracle oracle;
  CudaGraph graph = capture_graph(warm.step);
  CudaGraph taken = std::move(graph);
  // NOLINTBEGIN(bugprone-use-after-move)
  CHECK(contains(message_of<Error>([&] { graph.replay(); }), "was moved from"));
  CHECK(graph.replays() == 0);
  // NOLINTEND(bugprone-use-after-move)
  graph = capture_graph(warm.step);
  graph.replay();
  taken.replay();
  taken = std::move(graph);
  taken.replay();
  CHECK(taken.replays() == 2);
  for (int i = 0; i < 3; ++i) oracle.adam.step();
  CHECK(bitwise_equal(warm.params, oracle.params));
}

namespace {

// Lets one call of the simulated driver fail.
struct Faults {
  static inline CudaApi original = {};
  static inline int countdown = 0;
  static inline const char* failed = nullptr;

  Faults() { original = sim_api(); }
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;
  ~Faults() { api() = original; }
  void arm(int n);
  void disarm() { countdown = 0; }

 private:
  static CudaApi& api() { return const_cast<CudaApi&>(sim_api()); }
};

template <auto Member, class Pointer>
struct Failing;
template <auto Member, class... Args>
struct Failing<Member, cuda::Result (*)(Args...)> {
  static inline const char* name = nullptr;
  static cuda::Result call(Args... args) {
    if (Faults::countdown == 0 || --Faults::countdown > 0) {
      return (Faults::original.*Member)(args...);
    }
    Faults::failed = name;
    end(args...);  // which also happens when that fails
    return 999;
  }
  template <class... Any>
  static void end(Any... /*of other calls*/) {}
  static void end(cuda::Stream stream, cuda::Graph* graph) {
    Faults::original.stream_end_capture(stream, graph);
    Faults::original.graph_destroy(std::exchange(*graph, nullptr));
  }
  static void end(cuda::Graph graph) { Faults::original.graph_destroy(graph); }
  static void end(cuda::GraphExec exec) {
    Faults::original.graph_exec_destroy(exec);
  }
};

void Faults::arm(int n) {
  countdown = n;
  failed = nullptr;
#define CUDA_CALL(member, symbol, parameters)                           \
  {                                                                     \
    using Fails = Failing<&CudaApi::member, decltype(CudaApi::member)>; \
    Fails::name = #symbol;                                              \
    api().member = &Fails::call;                                        \
  }
#include "fusebook/cuda/cuda_calls.def"
#undef CUDA_CALL
}

}  // namespace

TEST_CASE("whatever call of the driver fails, the next attempt works") {
  if (gpu.kind != Device::Kind::cuda_sim) return;
  Faults faults;
  std::set<std::string> failed;
  Warm warm;
  Oracle oracle;
  for (int n = 1;; ++n) {
    faults.arm(n);
    std::int64_t replays = 0;
    const std::int64_t launches = warm.step.counters().launches;
    const std::string message = message_of<Error>([&] {
      CudaGraph graph = capture_graph(warm.step);
      for (; replays < 2; ++replays) graph.replay();
    });
    faults.disarm();
    if (Faults::failed == nullptr) break;
    const std::string symbol = Faults::failed;
    const std::string name = symbol.substr(0, symbol.find("_v2"));
    failed.insert(name);
    CAPTURE(n);
    CAPTURE(name);
    CAPTURE(message);
    if (message != "no error") CHECK(contains(message, name));
    CHECK(warm.step.counters().launches == launches + replays);
    CHECK_FALSE(gpu_of(gpu)->context().is_capturing());
    warm.step();
    for (std::int64_t i = 0; i <= replays; ++i) oracle.adam.step();
    REQUIRE(bitwise_equal(warm.params, oracle.params));
  }
  for (const char* const name :
       {"cuStreamBeginCapture", "cuLaunchKernel", "cuStreamEndCapture",
        "cuGraphInstantiateWithFlags", "cuGraphLaunch"}) {
    CAPTURE(name);
    CHECK(failed.contains(name));
  }
}

TEST_CASE("a replay that failed can be tried again") {
  if (gpu.kind != Device::Kind::cuda_sim) return;
  Faults faults;
  Warm warm;
  Oracle oracle;
  CudaGraph graph = capture_graph(warm.step);
  for (const int n : {1, 2}) {
    faults.arm(n);
    CHECK(message_of<Error>([&] { graph.replay(); }) != "no error");
    faults.disarm();
    CHECK(graph.replays() == n - 1);
    graph.replay();
    oracle.adam.step();
    CHECK(bitwise_equal(warm.params, oracle.params));
  }
}
