// States in 8 bits, in blocks of another size than 256.
#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fusebook/checkpoint/checkpoint.h"
#include "fusebook/compile/compile.h"
#include "fusebook/optim/all.h"
#include "fusebook/support/error.h"
#include "support/checkpoint_testing.h"
#include "support/coded_states.h"
#include "support/thread_count.h"

using namespace fuse;
using namespace coded_states;
using namespace step_testing;
using testing::contains;
using testing::message_of;

namespace {

const std::vector<std::int64_t> sizes = {32, 64, 128, 512, 1024, 2048};
// Blocks of all sizes, with tails, more than one share, and what stays in float32.
const std::vector<Shape> shapes = {{256},  {3, 1000}, {2048}, {70001},
                                   {4095}, {255},     {},     {0}};
constexpr std::int64_t smallest = 256;

std::int64_t size_in(const Optimizer& optimizer, const Tensor& param,
                     const char* name) {
  return block_size_of(optimizer.state(param, name).dtype());
}

}  // namespace

TEST_CASE("every optimizer steps as if its states were coded between steps") {
  std::size_t next = 0;
  for_each_kind([&]<class Kind>(auto options) {
    std::vector<Tensor> eagerly = make_params(shapes, 3);
    std::vector<Tensor> compiled = copies(eagerly);
    std::vector<Tensor> wide = copies(eagerly);
    Kind eager(eagerly, options);
    Kind fused(compiled, options);
    Kind oracle(wide, options);
    const std::int64_t size = sizes[next++ % sizes.size()];
    CAPTURE(oracle.name());
    CAPTURE(size);
    eager.use_8bit_states(true, smallest, size);
    fused.use_8bit_states(true, smallest, size);
    auto step = compile([&] { fused.step(); }, {.fullgraph = true});
    for (int n = 0; n < 3; ++n) {
      for (const auto* params : {&eagerly, &compiled, &wide}) {
        set_gradients(*params, n);
      }
      eager.step();
      step();
      oracle.step();
      CHECK(same_bits(eagerly, wide));
      CHECK(same_bits(compiled, wide));
      code_states(eager, eagerly, oracle, wide);
      CHECK(same_states(eager, eagerly, fused, compiled));
      for (std::size_t i = 0; i < wide.size(); ++i) {
        for (const auto& [name, state] : oracle.states(wide[i])) {
          const Tensor coded = eager.state(eagerly[i], name);
          CHECK(same_bits(coded.to(state.dtype()), state));
          if (in_blocks(coded.dtype())) {
            CHECK(block_size_of(coded.dtype()) == size);
          }
        }
      }
    }
    CHECK(step.counters().launches == 3);
    CHECK(step.counters().compilations == 1);
  });
}

TEST_CASE("every size, backend and number of threads: the same bits") {
  for (const std::int64_t size : sizes) {
    CAPTURE(size);
    std::vector<std::vector<Tensor>> params;
    std::vector<std::unique_ptr<Adam>> adams;
    for (const int threads : {1, 2, 5, 64}) {
      const testing::Threads chosen(threads);
      for (const Backend backend :
           {Backend::compiled, Backend::interpreted, Backend::simulated}) {
        if (threads == 64 && backend == Backend::simulated) continue;
        params.push_back(make_params(shapes, 3));
        adams.push_back(std::make_unique<Adam>(params.back(),
                                               AdamOptions{.amsgrad = true}));
        Adam& adam = *adams.back();
        adam.use_8bit_states(true, smallest, size);
        auto step = compile([&] { adam.step(); },
                            {.fullgraph = true, .backend = backend});
        for (int n = 0; n < 2; ++n) {
          set_gradients(params.back(), n);
          step();
        }
        CHECK(step.counters().launches == 2);
        CHECK(same_bits(params.back(), params.front()));
        CHECK(same_states(*adams.back(), params.back(), *adams.front(),
                          params.front()));
      }
    }
  }
}

TEST_CASE("groups with blocks of their own sizes take one launch") {
  for (const Backend backend :
       {Backend::compiled, Backend::interpreted, Backend::simulated}) {
    const std::vector<Tensor> params = {full({5000}, 1.0), full({5000}, 2.0),
                                        full({5000}, 3.0), full({5000}, 4.0)};
    const std::vector<Tensor> others = copies(params);
    using Group = Adam::Group;
    Adam adam({Group({params[0]}), Group({params[1]}), Group({params[2]}),
               Group({params[3]})});
    adam.use_8bit_states();
    adam.group(1).state_block_size = 32;
    adam.group(2).state_block_size = 2048;
    adam.group(3).states_8bit = false;
    auto step =
        compile([&] { adam.step(); }, {.fullgraph = true, .backend = backend});
    std::vector<std::unique_ptr<Adam>> alone;
    for (std::size_t g = 0; g < 4; ++g) {
      alone.push_back(std::make_unique<Adam>(std::vector{others[g]}));
      if (g < 3) {
        alone[g]->use_8bit_states(true, 4096, adam.group(g).state_block_size);
      }
    }
    for (int n = 0; n < 2; ++n) {
      set_gradients(params, n);
      set_gradients(others, n);
      step();
      for (const auto& each : alone) each->step();
      CHECK(same_bits(params, others));
    }
    CHECK(step.counters().launches == 2);
    CHECK(step.counters().compilations == 1);
    CHECK(size_in(adam, params[0], "exp_avg") == 256);
    CHECK(size_in(adam, params[1], "exp_avg") == 32);
    CHECK(size_in(adam, params[2], "exp_avg_sq") == 2048);
    CHECK(size_in(adam, params[3], "exp_avg") == 1);
  }
}

TEST_CASE("many groups, of which each has its own size or that of others") {
  std::vector<Tensor> params;
  std::vector<Adam::Group> groups;
  for (int g = 0; g < 20; ++g) {
    params.push_back(full({700 + g}, 1.0));
    groups.emplace_back(std::vector{params.back()});
  }
  const std::vector<Tensor> others = copies(params);
  Adam adam(groups);
  adam.use_8bit_states(true, smallest);
  for (std::size_t g = 0; g < 10; ++g) adam.group(g).state_block_size = 64;
  auto step = compile([&] { adam.step(); }, {.fullgraph = true});
  set_gradients(params, 1);
  step();
  CHECK(step.counters().launches == 1);
  set_gradients(others, 1);
  for (std::size_t g = 0; g < 20; ++g) {
    Adam alone({others[g]});
    alone.use_8bit_states(true, smallest, g < 10 ? 64 : 256);
    alone.step();
    CHECK(size_in(adam, params[g], "exp_avg") == (g < 10 ? 64 : 256));
    CHECK(same_states(adam, {params[g]}, alone, {others[g]}));
  }
  CHECK(same_bits(params, others));
}

TEST_CASE("gradients in another order take more launches, with the same bits") {
  const std::vector<Tensor> params = {full({80, 100}, 1.0)};
  const std::vector<Tensor> others = copies(params);
  Adam adam(params);
  Adam eager(others);
  adam.use_8bit_states(true, smallest, 64);
  eager.use_8bit_states(true, smallest, 64);
  auto step = compile([&] { adam.step(); });
  for (int n = 0; n < 2; ++n) {
    testing::Random random(std::uint64_t(n) + 5);
    const Tensor grad = random_tensor({100, 80}, random, 0.25).t();
    Tensor(params[0]).set_grad(grad);
    Tensor(others[0]).set_grad(grad.contiguous());
    step();
    eager.step();
    CHECK(same_bits(params, others));
    CHECK(same_states(adam, params, eager, others));
  }
}

TEST_CASE("what larger and smaller blocks take") {
  for (const std::int64_t size : sizes) {
    Tensor param = full({9000}, 0.5);
    Adam adam({param}, {.lr = 0.01});
    adam.use_8bit_states(true, 4096, size);
    auto step = compile([&] { adam.step(); }, {.fullgraph = true});
    set_gradients({param}, 1);
    step();
    const std::int64_t scales = 4 * ((9000 + size - 1) / size);
    // Three passes over floats, two over each state's codes and scales; and the
    // step count.
    CHECK(step.counters().bytes_moved == 9000 * (12 + 4) + 4 * scales + 16);
    const OptimizerMemory memory = adam.memory();
    CHECK(memory.states == 2 * 9000 + 8);
    CHECK(memory.scales == std::size_t(2 * scales));
  }
}

TEST_CASE("sizes that there are none of are refused") {
  Tensor param = full({5000}, 1.0);
  Adam adam({param});
  set_gradients({param}, 1);
  for (const std::int64_t size : {0, 16, 100, 4096, -32}) {
    CHECK(message_of<Error>([&] { adam.use_8bit_states(true, 1, size); }) ==
          "Adam::use_8bit_states: state_block_size must be a power of two from "
          "32 to 2048, but is " +
              std::to_string(size));
  }
  CHECK(!adam.group(0).states_8bit);
  CHECK(adam.group(0).min_8bit_size == 4096);
  adam.use_8bit_states();
  adam.group(0).state_block_size = 100;
  const Tensor before = param.clone();
  CHECK(contains(message_of<Error>([&] { adam.step(); }),
                 "states in 8 bits: state_block_size must be a power of two "
                 "from 32 to 2048, but is 100"));
  CHECK(bitwise_equal(param, before));
  CHECK(adam.states(param).empty());
}

TEST_CASE("what has too few elements, or another order, stays as it is") {
  const std::vector<Tensor> params = {zeros({100, 100}), zeros({4095}),
                                      zeros({5000}, DType::float64),
                                      zeros({100, 100}).t()};
  Adam adam(params);
  adam.use_8bit_states(true, 4096, 128);
  set_gradients(params, 1);
  adam.step();
  CHECK(size_in(adam, params[0], "exp_avg") == 128);
  CHECK(size_in(adam, params[0], "exp_avg_sq") == 128);
  CHECK(adam.state(params[1], "exp_avg").dtype() == DType::float32);
  CHECK(adam.state(params[2], "exp_avg").dtype() == DType::float64);
  CHECK(adam.state(params[3], "exp_avg").dtype() == DType::float32);
}

TEST_CASE("another size: states are converted by the next step") {
  std::vector<Tensor> params = {full({5000}, 1.0)};
  std::vector<Tensor> wide = copies(params);
  Adam adam(params);
  Adam oracle(wide);
  auto step = compile([&] { adam.step(); });
  int n = 0;
  for (const std::int64_t size : {256, 64, 64, 2048, 256}) {
    adam.use_8bit_states(true, 4096, size);
    for (const auto* both : {&params, &wide}) set_gradients(*both, n);
    if (n > 0) {  // what there is is coded in this size first
      for (const char* name : {"exp_avg", "exp_avg_sq"}) {
        const DType codes = name[7] == 0 ? DType::block8 : DType::ublock8;
        Tensor state = oracle.state(wide[0], name);
        state.copy_(state.to(with_block_size(codes, size)));
      }
    }
    step();
    oracle.step();
    ++n;
    CHECK(size_in(adam, params[0], "exp_avg") == size);
    code_states(adam, params, oracle, wide);
    CHECK(same_bits(params, wide));
  }
  CHECK(step.counters().compilations == 3);
}

TEST_CASE("a checkpoint keeps the size, and a step goes on in its group's") {
  const jit_testing::TempDir folder;
  const std::string path = folder.path() + "/run.safetensors";
  for (const std::int64_t size : {32, 1024}) {
    std::vector<Tensor> params = make_params(shapes, 3);
    Adam adam(params);
    adam.use_8bit_states(true, smallest, size);
    for (int n = 0; n < 2; ++n) {
      set_gradients(params, n);
      adam.step();
    }
    save_checkpoint(path, adam);
    const TensorFile file = read_safetensors(path);
    for (std::size_t i = 0; i < params.size(); ++i) {
      const std::string name =
          "param_groups.0.state." + std::to_string(i) + ".exp_avg";
      CHECK(bitwise_equal(file.tensors.at(name),
                          adam.state(params[i], "exp_avg")));
    }
    // Into states of this size, of another one, and of none.
    std::vector<std::vector<Tensor>> resumed;
    std::vector<std::unique_ptr<Adam>> others;
    for (const std::int64_t own : {size, std::int64_t(128), std::int64_t(1)}) {
      resumed.push_back(make_params(shapes, 4));
      others.push_back(std::make_unique<Adam>(resumed.back()));
      if (own > 1) others.back()->use_8bit_states(true, smallest, own);
      load_checkpoint(path, *others.back());
      CHECK(same_states(*others.back(), resumed.back(), adam, params));
      set_gradients(resumed.back(), 2);
      others.back()->step();
      CHECK(size_in(*others.back(), resumed.back()[0], "exp_avg") == own);
    }
    const StateDict before = adam.state_dict();
    CHECK(block_size_of(before.state.at(0).at("exp_avg").dtype()) == size);
    // What another size makes of the states, in float32.
    const std::vector<Tensor> wide = copies(params);
    Adam oracle(wide);
    for (std::size_t i = 0; i < params.size(); ++i) {
      ParamStates states;
      for (const auto& [name, state] : adam.states(params[i])) {
        states[name] = state.clone();
        if (!in_blocks(state.dtype())) continue;
        const DType other = with_block_size(state.dtype(), 128);
        states[name] = state.to(DType::float32).to(other).to(DType::float32);
      }
      oracle.restore_states(wide[i], states);
    }
    set_gradients(wide, 2);
    oracle.step();
    CHECK(same_bits(resumed[1], wide));
    set_gradients(params, 2);
    adam.step();
    CHECK(same_bits(resumed[0], params));
    CHECK(same_states(*others[0], resumed[0], adam, params));
  }
}

TEST_CASE("a file says how large its blocks are, also of short tensors") {
  const jit_testing::TempDir folder;
  const std::string path = folder.path() + "/some.safetensors";
  TensorMap tensors;
  for (const std::int64_t size : {32, 256, 2048}) {
    for (const DType codes : {DType::block8, DType::ublock8}) {
      const DType type = with_block_size(codes, size);
      tensors[name_of(type)] = full({3}, 0.75, type);
    }
  }
  write_safetensors(path, {}, tensors);
  const TensorFile file = read_safetensors(path);
  CHECK(file.tensors.size() == tensors.size());
  for (const auto& [name, tensor] : tensors) {
    CHECK(bitwise_equal(file.tensors.at(name), tensor));
  }
  for (const char* taken : {"block8.scales", "block8.scales_64"}) {
    TensorMap more = tensors;
    more[taken] = zeros({1});
    CHECK(
        contains(message_of<Error>([&] { write_safetensors(path, {}, more); }),
                 "a tensor is called \"" + std::string(taken) +
                     "\", as scales of \"block8\" in 8 bits are"));
  }
}
