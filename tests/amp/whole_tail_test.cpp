// Everything around a step at once: the scale is taken out of gradients, they are
// checked and clipped, the optimizer steps, and its parameters are averaged.
#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "fusebook/amp/grad_scaler.h"
#include "fusebook/compile/compile.h"
#include "fusebook/compile/cuda_graph.h"
#include "fusebook/foreach/clip_grad.h"
#include "fusebook/foreach/reductions.h"
#include "fusebook/optim/all.h"
#include "fusebook/swa_utils/averaged_model.h"
#include "support/jit_testing.h"
#include "support/sim_device.h"
#include "support/step_testing.h"
#include "support/tested_device.h"

using namespace fuse;
using namespace step_testing;
using testing::odd_sim_devices;
using testing::OtherSimDevice;
using testing::tested_device;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t numel = 9300;

std::vector<Tensor> zeros_like_each(const std::vector<Tensor>& params) {
  std::vector<Tensor> zeros;
  for (const Tensor& each : params) zeros.push_back(zeros_like(each));
  return zeros;
}

std::vector<Tensor> params_on(const Device& device) {
  std::vector<Tensor> params;
  for (const Tensor& each : make_params({{300}, {9000}}, 1)) {
    params.push_back(each.to(device));
  }
  return params;
}

// A model in training, with all that belongs to it.
struct Training {
  explicit Training(const Device& device = cpu_device)
      : params(params_on(device)) {}

  // As a backward pass does: gradients are new tensors, or stay in place.
  void set_gradients(int step, bool bad, bool in_place = false) {
    testing::Random random(std::uint64_t(step) + 100);
    for (Tensor param : params) {
      auto values = random_tensor(param.shape(), random, 0.25).to_vector();
      for (double& x : values) x *= scaler.get_scale();
      if (bad) values.back() = infinity;
      const Tensor grad = tensor(values).to(param.device());
      in_place ? param.grad().copy_(grad) : param.set_grad(grad);
    }
  }

  void tail() {
    scaler.unscale_(adam);
    clip_grad_norm_(params, 20.0);
    scaler.step(adam);
    averages.update(params, {.skip = scaler.found_inf(adam)});
    scaler.update();
  }

  // The same with the factors as numbers of the step: gradients stay as they
  // are.
  void tail_in_registers() {
    const std::vector<TensorList> grads = adam.gradient_lists();
    const Scalar skip = 1.0 - all_finite(grads[0]);
    const Scalar norm = total_norm(grads[0]) / Scalar(1024.0);
    const Scalar larger =
        scalar_op(OpCode::maximum, (norm + Scalar(1e-6)) / Scalar(20.0), 1.0);
    adam.step({.grad_scale = Scalar(1024.0) * larger, .skip = skip});
    averages.update(params, {.skip = skip});
  }

  std::vector<Tensor> params;
  std::vector<Tensor> averaged = zeros_like_each(params);
  Adam adam{params, {.lr = 0.01}};
  GradScaler scaler{{.init_scale = 1024, .growth_interval = 1000}};
  ParameterAverages averages{averaged, get_ema_multi_avg_fn(0.9)};
};

std::vector<Tensor> on_host(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copied;
  for (const Tensor& each : tensors) copied.push_back(each.to(cpu_device));
  return copied;
}

bool is_bad(int step) { return step % 4 == 1; }

}  // namespace

TEST_CASE("the whole tail of a step is one launch with the bits of its parts") {
  for (const Backend backend :
       {Backend::compiled, Backend::interpreted, Backend::simulated}) {
    Training fused;
    Training eager;
    auto step =
        compile([&] { fused.tail(); }, {.fullgraph = true, .backend = backend});
    for (int n = 0; n < 12; ++n) {
      fused.set_gradients(n, is_bad(n));
      eager.set_gradients(n, is_bad(n));
      step();
      eager.tail();
      CHECK(same_bits(fused.params, eager.params));
      CHECK(same_bits(fused.averaged, eager.averaged));
      CHECK(same_bits(fused.params[1].grad(), eager.params[1].grad()));
      CHECK(fused.scaler.state_dict() == eager.scaler.state_dict());
    }
    CHECK(fused.averages.n_averaged() == 9);
    CHECK(fused.adam.state(fused.params[0], "step").item() == 9);
    CHECK(fused.adam.steps() == 12);
    CHECK(step.counters().graph_breaks == 0);
    CHECK(step.counters().compilations == 1);
    CHECK(step.counters().launches == 12);
  }
}

TEST_CASE("the tail has the same bits where its operations run one by one") {
  Training fused;
  Training eager;
  jit_testing::CapturedStderr captured;
  auto step = compile([&] { fused.tail(); }, {.backend = Backend::interpreted,
                                              .policy = Policy::specialize});
  for (int n = 0; n < 12; ++n) {  // more rates than there may be kernels
    for (Training* each : {&fused, &eager}) {
      each->adam.param_groups[0]["lr"] = 0.01 / (n + 1);
      each->set_gradients(n, is_bad(n));
    }
    step();
    eager.tail();
    CHECK(same_bits(fused.params, eager.params));
    CHECK(same_bits(fused.averaged, eager.averaged));
    CHECK(fused.scaler.state_dict() == eager.scaler.state_dict());
  }
  CHECK(testing::contains(captured.stop(), "runs eagerly from now on"));
  CHECK(step.counters().launches > 12);
}

// Numbers that a later phase needs are read before they are overwritten: the
// scale goes into the gradients, and update() moves it.
TEST_CASE("on a GPU the whole tail is one launch") {
  Training on_gpu(tested_device());
  Training eager;
  auto step = compile([&] { on_gpu.tail(); }, {.fullgraph = true});
  for (int n = 0; n < 12; ++n) {
    on_gpu.set_gradients(n, is_bad(n));
    eager.set_gradients(n, is_bad(n));
    step();
    eager.tail();
    CHECK(same_bits(on_host(on_gpu.params), eager.params));
    CHECK(same_bits(on_host(on_gpu.averaged), eager.averaged));
    CHECK(same_bits(on_gpu.params[1].grad().to(cpu_device),
                    eager.params[1].grad()));
    CHECK(on_gpu.scaler.state_dict() == eager.scaler.state_dict());
  }
  CHECK(on_gpu.averages.n_averaged() == 9);
  CHECK(on_gpu.adam.state(on_gpu.params[0], "step").item() == 9);
  CHECK(step.counters().graph_breaks == 0);
  CHECK(step.counters().compilations == 1);
  CHECK(step.counters().launches == 12);
  // As on the CPU, and the scale once more.
  CHECK(step.counters().bytes_moved == 12 * (numel * 44 + 2 * 32 + 24 + 4));
  CHECK(step.counters().reduction_phases == 12);
}

TEST_CASE("the tail is one launch on a GPU of any size, or as many as phases") {
  Training eager;
  for (int n = 0; n < 4; ++n) {
    eager.set_gradients(n, is_bad(n));
    eager.tail();
  }
  for (const SimDevice& device : odd_sim_devices()) {
    CAPTURE(device.multiprocessors);
    CAPTURE(device.cooperative_launch);
    const OtherSimDevice other(device);
    Training fused;
    auto step = compile([&] { fused.tail(); },
                        {.fullgraph = true, .backend = Backend::simulated});
    for (int n = 0; n < 4; ++n) {
      fused.set_gradients(n, is_bad(n));
      step();
    }
    CHECK(same_bits(fused.params, eager.params));
    CHECK(same_bits(fused.averaged, eager.averaged));
    CHECK(fused.scaler.state_dict() == eager.scaler.state_dict());
    CHECK(step.counters().launches == (device.cooperative_launch ? 4 : 8));
    CHECK(step.counters().reduction_phases == 4);
  }
}

TEST_CASE("a tail is captured as as many launches as it was") {
  for (const bool cooperative : {true, false}) {
    const OtherSimDevice other({.cooperative_launch = cooperative});
    const Device sim = parse_device("cuda-sim");
    Training replayed(sim);
    Training called(sim);
    auto step = compile([&] { replayed.tail(); }, {.fullgraph = true});
    auto twin = compile([&] { called.tail(); }, {.fullgraph = true});
    replayed.set_gradients(0, false);
    called.set_gradients(0, false);
    step();
    twin();
    CudaGraph graph = capture_graph(step);
    for (int n = 1; n < 4; ++n) {
      replayed.set_gradients(n, is_bad(n), true);
      called.set_gradients(n, is_bad(n), true);
      graph.replay();
      twin();
      CHECK(bitwise_equal(replayed.params, called.params));
      CHECK(bitwise_equal(replayed.averaged, called.averaged));
    }
    CHECK(step.counters().launches == (cooperative ? 4 : 8));
    CHECK(twin.counters().launches == (cooperative ? 4 : 8));
  }
}

TEST_CASE("a captured tail has the bits of its launches") {
  Training replayed(tested_device());
  Training called(tested_device());
  auto step = compile([&] { replayed.tail(); }, {.fullgraph = true});
  auto twin = compile([&] { called.tail(); }, {.fullgraph = true});
  replayed.set_gradients(0, false);
  called.set_gradients(0, false);
  step();
  twin();
  CudaGraph graph = capture_graph(step);
  for (int n = 1; n < 12; ++n) {
    replayed.set_gradients(n, is_bad(n), true);
    called.set_gradients(n, is_bad(n), true);
    graph.replay();
    twin();
    CHECK(bitwise_equal(replayed.params, called.params));
    CHECK(bitwise_equal(replayed.averaged, called.averaged));
    CHECK(bitwise_equal(replayed.params[1].grad(), called.params[1].grad()));
    CHECK(replayed.scaler.state_dict() == called.scaler.state_dict());
  }
  CHECK(replayed.averages.n_averaged() == 9);
  CHECK(replayed.adam.state(replayed.params[0], "step").item() == 9);
  CHECK(step.counters().launches == twin.counters().launches);
  CHECK(step.counters().compilations == 1);
}

TEST_CASE("the tail moves 44 bytes an element, and 40 if gradients stay") {
  for (const bool in_registers : {false, true}) {
    Training training;
    auto step = compile(
        [&] { in_registers ? training.tail_in_registers() : training.tail(); },
        {.fullgraph = true});
    training.set_gradients(0, false);
    step();
    const Counters first = step.counters();
    CHECK(first.launches == 1);
    // Two counts of each tensor are read and stored; so are, as float32 and
    // float64, the scale and its tracker.
    const std::int64_t numbers = 2 * 32 + (in_registers ? 0 : 24);
    CHECK(first.bytes_moved == numel * (in_registers ? 40 : 44) + numbers);
  }
}

TEST_CASE("factors in registers give the same step") {
  Training in_memory;
  Training in_registers;
  auto step =
      compile([&] { in_registers.tail_in_registers(); }, {.fullgraph = true});
  for (int n = 0; n < 5; ++n) {
    in_memory.set_gradients(n, false);
    in_registers.set_gradients(n, false);
    in_memory.tail();
    step();
  }
  for (std::size_t p = 0; p < in_memory.params.size(); ++p) {
    CHECK(allclose(in_memory.params[p], in_registers.params[p], 1e-5));
    CHECK(allclose(in_memory.averaged[p], in_registers.averaged[p], 1e-5));
  }
}
