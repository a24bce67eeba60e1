// Optimizers that keep their states in codes of 8 bits.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fusebook/checkpoint/checkpoint.h"
#include "fusebook/compile/compile.h"
#include "fusebook/optim/all.h"
#include "fusebook/prelude/blocks.h"
#include "fusebook/support/error.h"
#include "support/checkpoint_testing.h"
#include "support/coded_states.h"
#include "support/tested_device.h"
#include "support/thread_count.h"

using namespace fuse;
using namespace coded_states;
using namespace step_testing;
using testing::contains;
using testing::message_of;
using testing::tested_device;

namespace {

// A block, many with a tail, more than one share, and what stays in float32.
const std::vector<Shape> shapes = {{256}, {3, 1000}, {70000}, {255}, {}, {0}};
constexpr std::int64_t smallest = 256;

}  // namespace

TEST_CASE("every optimizer steps as if its states were coded between steps") {
  for_each_kind([&]<class Kind>(auto options) {
    std::vector<Tensor> eagerly = make_params(shapes, 3);
    std::vector<Tensor> compiled = copies(eagerly);
    std::vector<Tensor> wide = copies(eagerly);
    Kind eager(eagerly, options);
    Kind fused(compiled, options);
    Kind oracle(wide, options);
    CAPTURE(oracle.name());
    eager.use_8bit_states(true, smallest);
    fused.use_8bit_states(true, smallest);
    auto step = compile([&] { fused.step(); }, {.fullgraph = true});
    for (int n = 0; n < 4; ++n) {
      set_gradients(eagerly, n);
      set_gradients(compiled, n);
      set_gradients(wide, n);
      eager.step();
      step();
      oracle.step();
      CHECK(same_bits(eagerly, wide));
      CHECK(same_bits(compiled, wide));
      code_states(eager, eagerly, oracle, wide);
      CHECK(same_states(eager, eagerly, fused, compiled));
      for (std::size_t i = 0; i < wide.size(); ++i) {
        for (const auto& [name, state] : oracle.states(wide[i])) {
          CHECK(same_bits(eager.state(eagerly[i], name).to(state.dtype()),
                          state));
        }
      }
    }
    CHECK(step.counters().graph_breaks == 0);
    CHECK(step.counters().launches == 4);
    CHECK(step.counters().compilations == 1);
  });
}

TEST_CASE("every backend, any number of threads: the same bits") {
  std::vector<std::vector<Tensor>> params;
  std::vector<std::unique_ptr<Adam>> adams;
  for (const int threads : {1, 2, 5}) {
    const testing::Threads chosen(threads);
    for (const Backend backend :
         {Backend::compiled, Backend::interpreted, Backend::simulated}) {
      params.push_back(make_params(shapes, 3));
      adams.push_back(
          std::make_unique<Adam>(params.back(), AdamOptions{.amsgrad = true}));
      Adam& adam = *adams.back();
      adam.use_8bit_states(true, smallest);
      auto step = compile([&] { adam.step(); },
                          {.fullgraph = true, .backend = backend});
      for (int n = 0; n < 3; ++n) {
        set_gradients(params.back(), n);
        step();
      }
      CHECK(step.counters().launches == 3);
      CHECK(same_bits(params.back(), params.front()));
      CHECK(same_states(*adams.back(), params.back(), *adams.front(),
                        params.front()));
    }
  }
}

TEST_CASE("parameters of 16 bits, with and without masters") {
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    for (const bool with_masters : {false, true}) {
      std::vector<Tensor> eagerly = make_params(shapes, 3, dtype);
      std::vector<Tensor> fused = copies(eagerly);
      std::vector<Tensor> simulated = copies(eagerly);
      std::vector<std::unique_ptr<Adam>> adams;
      for (const auto* params : {&eagerly, &fused, &simulated}) {
        adams.push_back(std::make_unique<Adam>(*params));
        adams.back()->use_master_weights(with_masters);
        adams.back()->use_8bit_states(true, smallest);
      }
      auto step = compile([&] { adams[1]->step(); }, {.fullgraph = true});
      auto on_gpu = compile([&] { adams[2]->step(); },
                            {.fullgraph = true, .backend = Backend::simulated});
      for (int n = 0; n < 3; ++n) {
        for (const auto* params : {&eagerly, &fused, &simulated}) {
          set_gradients(*params, n);
        }
        adams[0]->step();
        step();
        on_gpu();
        CHECK(same_bits(fused, eagerly));
        CHECK(same_bits(simulated, eagerly));
        CHECK(same_states(*adams[1], fused, *adams[0], eagerly));
        CHECK(same_states(*adams[2], simulated, *adams[0], eagerly));
      }
      CHECK(is_coded(*adams[0], eagerly[0], "exp_avg"));
      if (with_masters) {
        CHECK(adams[0]->state(eagerly[0], "master_param").dtype() ==
              DType::float32);
      }
    }
  }
}

TEST_CASE("a step moves 16 bytes an element and the scales, on a GPU too") {
  for (const Device& device : {cpu_device, tested_device()}) {
    Tensor param = full({9000}, 0.5).to(device);
    Adam adam({param}, {.lr = 0.01});
    adam.use_8bit_states();
    auto step = compile([&] { adam.step(); }, {.fullgraph = true});
    for (int n = 0; n < 3; ++n) {
      set_gradients({param}, n);  // new tensors each time
      step();
    }
    // Three passes over floats, two over each state's codes and 36 scales; and
    // the step count.
    CHECK(step.counters().bytes_moved ==
          3 * (9000 * (12 + 4) + 4 * 36 * 4 + 16));
    CHECK(step.counters().launches == 3);
    CHECK(step.counters().compilations == 1);
    const OptimizerMemory memory = adam.memory();
    CHECK(memory.params == 4 * 9000);
    CHECK(memory.states == 2 * 9000 + 8);
    CHECK(memory.scales == 2 * 36 * 4);
  }
}

TEST_CASE("what stays as it is") {
  const std::vector<Tensor> params = {
      zeros({100, 100}),
      zeros({4095}),
      zeros({5000}, DType::float64),
      zeros({100, 100}).t(),
  };
  Adam adam(params);
  adam.use_8bit_states();
  set_gradients(params, 1);
  adam.step();
  CHECK(adam.state(params[0], "exp_avg").dtype() == DType::block8);
  CHECK(adam.state(params[0], "exp_avg_sq").dtype() == DType::ublock8);
  CHECK(adam.state(params[1], "exp_avg").dtype() == DType::float32);
  CHECK(adam.state(params[2], "exp_avg").dtype() == DType::float64);
  CHECK(adam.state(params[3], "exp_avg").dtype() == DType::float32);
  CHECK(contains(message_of<Error>([&] { adam.use_8bit_states(true, -1); }),
                 "Adam::use_8bit_states: min_8bit_size must not be negative"));
}

TEST_CASE("gradients in another order take more launches, with the same bits") {
  std::vector<Tensor> eagerly = {full({80, 100}, 1.0)};
  std::vector<Tensor> fused = copies(eagerly);
  std::vector<Tensor> plain = copies(eagerly);
  std::vector<std::unique_ptr<Adam>> adams;
  for (const auto* params : {&eagerly, &fused, &plain}) {
    adams.push_back(std::make_unique<Adam>(*params));
    adams.back()->use_8bit_states();
  }
  auto step = compile([&] { adams[1]->step(); });
  for (int n = 0; n < 3; ++n) {
    testing::Random random(std::uint64_t(n) + 5);
    const Tensor grad = random_tensor({100, 80}, random, 0.25).t();
    for (const auto* params : {&eagerly, &fused}) {
      Tensor(params->front()).set_grad(grad);
    }
    plain[0].set_grad(grad.contiguous());
    adams[0]->step();
    adams[2]->step();
    step();
    CHECK(same_bits(eagerly, plain));
    CHECK(same_bits(fused, plain));
    CHECK(same_states(*adams[1], fused, *adams[2], plain));
  }
}

TEST_CASE("one bad gradient spoils no other element") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double bad : {std::nan(""), infinity, -infinity}) {
    std::vector<Tensor> params = {full({5000}, 1.0)};
    std::vector<Tensor> healthy = copies(params);
    Adam adam(params);
    Adam other(healthy);
    adam.use_8bit_states();
    other.use_8bit_states();
    for (int n = 0; n < 3; ++n) {
      set_gradients(params, n);
      set_gradients(healthy, n);
      healthy[0].grad().narrow(0, 700, 1).fill_(0);
      params[0].grad().narrow(0, 700, 1).fill_(n == 1 ? bad : 0);
      adam.step();
      other.step();
    }
    const std::vector<double> values = params[0].to_vector();
    const std::vector<double> expected = healthy[0].to_vector();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i == 700) {
        CHECK(std::isnan(values[i]));
      } else if (values[i] != expected[i]) {
        FAIL("element " << i);
      }
    }
  }
}

TEST_CASE("a skipped step changes no code and no scale") {
  for (const Backend backend :
       {Backend::compiled, Backend::interpreted, Backend::simulated}) {
    std::vector<Tensor> params = make_params(shapes, 3);
    Adam adam(params);
    adam.use_8bit_states(true, smallest);
    Tensor skip = tensor(0.0);
    auto step = compile([&] { adam.step({.skip = Scalar(skip)}); },
                        {.fullgraph = true, .backend = backend});
    for (int n = 0; n < 2; ++n) {
      set_gradients(params, n);
      step();
    }
    std::vector<Tensor> before;
    for (const Tensor& param : params) {
      for (const auto& [name, state] : adam.states(param)) {
        before.push_back(state.clone());
      }
    }
    skip.fill_(1);
    set_gradients(params, 2);
    step();
    std::size_t k = 0;
    for (const Tensor& param : params) {
      for (const auto& [name, state] : adam.states(param)) {
        CHECK(bitwise_equal(state, before[k++]));
      }
    }
  }
}

TEST_CASE("two steps in one function are cut in two, with the same bits") {
  std::vector<Tensor> params = make_params(shapes, 3);
  std::vector<Tensor> others = copies(params);
  Adam adam(params);
  Adam eager(others);
  adam.use_8bit_states(true, smallest);
  eager.use_8bit_states(true, smallest);
  auto twice = compile([&] {
    adam.step();
    adam.step();
  });
  set_gradients(params, 1);
  set_gradients(others, 1);
  twice();
  eager.step();
  eager.step();
  CHECK(same_bits(params, others));
  CHECK(same_states(adam, params, eager, others));
  CHECK(twice.counters().graph_breaks >= 1);
}

TEST_CASE("switched on and off, states are converted by the next step") {
  std::vector<Tensor> params = {full({5000}, 1.0)};
  std::vector<Tensor> wide = copies(params);
  Adam adam(params);
  Adam oracle(wide);
  for (int n = 0; n < 6; ++n) {
    adam.use_8bit_states(n % 2 == 1);
    set_gradients(params, n);
    set_gradients(wide, n);
    if (n % 2 == 1) {  // on: what there is is coded first, and after the step
      for (const char* name : {"exp_avg", "exp_avg_sq"}) {
        const DType dtype = name[7] == 0 ? DType::block8 : DType::ublock8;
        Tensor state = oracle.state(wide[0], name);
        state.copy_(state.to(dtype));
      }
    }
    adam.step();
    oracle.step();
    CHECK(is_coded(adam, params[0], "exp_avg") == (n % 2 == 1));
    code_states(adam, params, oracle, wide);
    CHECK(same_bits(params, wide));
  }
}

TEST_CASE("a checkpoint holds codes and scales, and resumes in all bits") {
  const jit_testing::TempDir folder;
  const std::string path = folder.path() + "/run.safetensors";
  std::vector<Tensor> params = make_params(shapes, 3);
  Adam adam(params, {.amsgrad = true});
  adam.use_8bit_states(true, smallest);
  for (int n = 0; n < 3; ++n) {
    set_gradients(params, n);
    adam.step();
  }
  save_checkpoint(path, adam);
  const TensorFile file = read_safetensors(path);
  const Tensor& codes = file.tensors.at("param_groups.0.state.1.exp_avg");
  CHECK(codes.dtype() == DType::block8);
  CHECK(bitwise_equal(codes, adam.state(params[1], "exp_avg")));

  std::vector<Tensor> resumed = make_params(shapes, 4);
  Adam again(resumed, {.amsgrad = true});
  again.use_8bit_states(true, smallest);
  load_checkpoint(path, again);
  CHECK(same_states(again, resumed, adam, params));
  std::vector<Tensor> widened = make_params(shapes, 5);
  Adam wide(widened, {.amsgrad = true});  // goes on in float32
  load_checkpoint(path, wide);
  for (int n = 3; n < 5; ++n) {
    set_gradients(params, n);
    set_gradients(resumed, n);
    set_gradients(widened, n);
    adam.step();
    again.step();
    wide.step();
    CHECK(same_bits(resumed, params));
    CHECK(same_states(again, resumed, adam, params));
    if (n == 3) CHECK(same_bits(widened, params));
  }
  CHECK(wide.state(widened[1], "exp_avg").dtype() == DType::float32);
}

TEST_CASE("what is loaded is kept in its bits, whatever was kept before") {
  for (const bool coded : {false, true}) {
    std::vector<Tensor> params = make_params(shapes, 3);
    Adam adam(params);
    adam.use_8bit_states(coded, smallest);
    set_gradients(params, 0);
    adam.step();
    std::vector<Tensor> others = make_params(shapes, 4);
    Adam other(others);
    other.use_8bit_states(!coded, smallest, 64);
    auto step = compile([&] { other.step(); });
    set_gradients(others, 1);
    step();
    other.use_8bit_states(coded, smallest);
    other.load_state_dict(adam.state_dict());
    CHECK(same_states(other, others, adam, params));
    for (std::size_t i = 0; i < params.size(); ++i) {
      others[i].copy_(params[i]);
    }
    for (int n = 2; n < 4; ++n) {
      set_gradients(params, n);
      set_gradients(others, n);
      adam.step();
      step();
      CHECK(same_bits(others, params));
      CHECK(same_states(other, others, adam, params));
    }
  }
}

TEST_CASE("codes are loaded where a state could have them") {
  const std::vector<Tensor> params = {full({300}, 1.0).to(DType::bfloat16)};
  Adam adam(params);
  adam.use_master_weights();
  adam.use_8bit_states(true, smallest);
  adam.parameters()[0].set_grad(full({300}, 1.0).to(DType::bfloat16));
  adam.step();
  const auto refused = [&](const char* name, DType dtype) {
    StateDict all = adam.state_dict();
    all.state[0][name] = full({300}, 1.0).to(dtype);
    return message_of<Error>([&] { adam.load_state_dict(all); });
  };
  CHECK(contains(refused("exp_avg", DType::ublock8), "exp_avg has shape"));
  CHECK(contains(refused("exp_avg_sq", DType::block8), "exp_avg_sq has shape"));
  CHECK(contains(refused("master_param", DType::block8),
                 "master_param has shape"));
  CHECK(adam.state(params[0], "step").item() == 1);
  StateDict good = adam.state_dict();
  good.state[0]["exp_avg"] = full({300}, 1.0).to(with_block_size(block8, 32));
  adam.load_state_dict(good);
  CHECK(adam.state(params[0], "exp_avg").dtype() ==
        with_block_size(block8, 32));
}
