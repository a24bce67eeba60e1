// A number from outside that a step reads in its kernel: whether it changes
// anything at all, and what it divides gradients by.
#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/foreach/reductions.h"
#include "fusebook/optim/all.h"
#include "fusebook/trace/skip_scope.h"
#include "support/checkpoint_testing.h"
#include "support/tested_device.h"

using namespace fuse;
using namespace step_testing;
using checkpoint_testing::Kind;
using checkpoint_testing::kinds;
using checkpoint_testing::OptimizerPtr;
using testing::tested_device;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Parameters, states and step counts, but not the calls of step().
std::string bits_of(Optimizer& opt) {
  const std::string all = checkpoint_testing::bits_of(opt, {});
  return all.substr(all.find('\n'));
}

std::vector<Tensor> gradients_of(const ParamGroup& group) {
  std::vector<Tensor> grads;
  for (const Tensor& param : group.params) grads.push_back(param.grad());
  return grads;
}

// Those of a step depend on its number alone; those of a bad one have an
// element, in one of the groups, that is not finite.
void set_gradients(Optimizer& opt, int step, bool bad) {
  testing::Random random(std::uint64_t(step) + 100);
  const auto params = opt.parameters();
  for (const Tensor& param : params) {
    param.grad().copy_(
        random_tensor(param.shape(), random, 0.25, param.dtype()));
  }
  if (!bad) return;
  const Tensor& spoilt = step % 2 == 0 ? params.front() : params.back();
  auto values = spoilt.grad().to_vector();
  values.back() = step % 3 == 0 ? -infinity : std::nan("");
  assign(spoilt.grad(), values);
}

// A list has one dtype, and so has a group of these tests.
Scalar found_inf(const Optimizer& opt) {
  Scalar finite(1.0);
  for (std::size_t g = 0; g < opt.group_count(); ++g) {
    finite = finite * all_finite(gradients_of(opt.group(g)));
  }
  return Scalar(1.0) - finite;
}

std::vector<bool> random_steps(int count, std::uint64_t seed) {
  testing::Random random(seed);
  std::vector<bool> bad = {true};  // the very first one, too
  while (int(bad.size()) < count) bad.push_back(random.chance(0.4));
  return bad;
}

// What the host would do if it waited for the gradients.
std::string bits_by_host(const Kind& kind, bool tensors,
                         const std::vector<bool>& bad) {
  const OptimizerPtr opt = kind.make(tensors);
  for (std::size_t n = 0; n < bad.size(); ++n) {
    set_gradients(*opt, int(n), bad[n]);
    if (!bad[n]) opt->step();
  }
  return bits_of(*opt);
}

std::string bits_by_device(const Kind& kind, bool tensors,
                           const std::vector<bool>& bad, Backend backend) {
  const OptimizerPtr opt = kind.make(tensors);
  auto step = compile([&] { opt->step({.skip = found_inf(*opt)}); },
                      {.fullgraph = true, .backend = backend});
  for (std::size_t n = 0; n < bad.size(); ++n) {
    set_gradients(*opt, int(n), bad[n]);
    step();
  }
  CHECK(opt->steps() == std::int64_t(bad.size()));
  CHECK(step.counters().launches == std::int64_t(bad.size()));
  CHECK(step.counters().compilations <= 2);  // the rate may have to be promoted
  return bits_of(*opt);
}

std::string bits_by_eager(const Kind& kind, bool tensors,
                          const std::vector<bool>& bad) {
  const OptimizerPtr opt = kind.make(tensors);
  for (std::size_t n = 0; n < bad.size(); ++n) {
    set_gradients(*opt, int(n), bad[n]);
    opt->step({.skip = found_inf(*opt)});
  }
  return bits_of(*opt);
}

}  // namespace

TEST_CASE("a skipped step of any optimizer changes no bit") {
  const auto bad = random_steps(7, 1);
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    for (const bool tensors : {false, true}) {
      CAPTURE(tensors);
      const std::string wanted = bits_by_host(kind, tensors, bad);
      CHECK(bits_by_device(kind, tensors, bad, Backend::compiled) == wanted);
      CHECK(bits_by_eager(kind, tensors, bad) == wanted);
    }
  }
}

TEST_CASE("two hundred steps with infinities at random") {
  const auto bad = random_steps(200, 2);
  const Kind& adam = kinds().front();
  const std::string wanted = bits_by_host(adam, false, bad);
  for (const Backend backend :
       {Backend::compiled, Backend::interpreted, Backend::simulated}) {
    CHECK(bits_by_device(adam, false, bad, backend) == wanted);
  }
  CHECK(bits_by_eager(adam, false, bad) == wanted);
}

TEST_CASE("the check and the step are one launch that moves no byte more") {
  std::vector<Tensor> params = make_params({{20000}, {300}}, 3);
  Adam adam(params, {.lr = 0.01});
  auto step = compile([&] { adam.step({.skip = found_inf(adam)}); },
                      {.fullgraph = true});
  for (int n = 0; n < 3; ++n) step();
  CHECK(step.counters().launches == 3);
  CHECK(step.counters().reduction_phases == 3);
  CHECK(step.counters().compilations == 1);
  // Gradients are read twice; step counts are read and stored.
  CHECK(step.counters().bytes_moved == 3 * (20300 * (4 + 28) + 2 * 16));
}

TEST_CASE("any number but 0 skips") {
  for (const double skip : {1.0, -2.0, 1e-300, infinity}) {
    for (const bool compiled : {false, true}) {
      std::vector<Tensor> params = make_params({{5}}, 4);
      SGD sgd(params, {.lr = 0.5, .momentum = 0.5});
      const auto before = copies(params);
      double now = skip;
      const auto call = [&] { sgd.step({.skip = now}); };
      auto step = compile(call);
      const auto run = [&] { compiled ? step() : call(); };
      run();
      CHECK(same_bits(params, before));
      CHECK(sgd.state(params[0], "step").item() == 0);
      CHECK(sgd.steps() == 1);
      now = 0;
      run();
      CHECK(!same_bits(params, before));
      CHECK(sgd.state(params[0], "step").item() == 1);
      CHECK(sgd.steps() == 2);
    }
  }
}

TEST_CASE("a number on a GPU decides there") {
  std::vector<Tensor> host = make_params({{5}, {300}}, 5);
  std::vector<Tensor> params;
  for (const Tensor& each : host) {
    params.push_back(each.to(tested_device()));
    params.back().set_grad(each.grad().to(tested_device()));
  }
  const Tensor skip = full({}, 1.0).to(tested_device());
  Adam adam(params);
  auto step = compile([&] { adam.step({.skip = skip}); }, {.fullgraph = true});
  step();
  for (std::size_t i = 0; i < host.size(); ++i) {
    CHECK(same_bits(params[i].cpu(), host[i]));
  }
  Tensor(skip).fill_(0);
  step();
  adam.step({.skip = skip});
  CHECK(adam.state(params[0], "step").item() == 2);
  Adam other(host);
  for (int n = 0; n < 2; ++n) other.step();
  for (std::size_t i = 0; i < host.size(); ++i) {
    CHECK(same_bits(params[i].cpu(), host[i]));
  }
}

TEST_CASE("gradients are divided as they are read") {
  for (const double scale : {65536.0, 3.0}) {
    for (const DType dtype : {DType::float32, DType::bfloat16}) {
      for (const bool compiled : {false, true}) {
        std::vector<Tensor> params = make_params({{5}, {300}}, 6);
        std::vector<Tensor> divided = copies(params);
        for (std::size_t i = 0; i < params.size(); ++i) {
          params[i].set_grad(params[i].grad().to(dtype));
          auto values = params[i].grad().to_vector();
          for (double& x : values) x = double(float(x) / float(scale));
          divided[i].set_grad(tensor(values));
        }
        const auto grads = copies({params[0].grad(), params[1].grad()});
        Adam adam(params, {.weight_decay = 0.1});
        Adam by_hand(divided, {.weight_decay = 0.1});
        const auto call = [&] { adam.step({.grad_scale = scale}); };
        auto step = compile(call, {.fullgraph = true});
        for (int n = 0; n < 3; ++n) {
          compiled ? step() : call();
          by_hand.step();
        }
        CHECK(same_bits(params, divided));
        CHECK(same_bits({params[0].grad(), params[1].grad()}, grads));
        if (compiled) CHECK(step.counters().launches == 3);
      }
    }
  }
}

TEST_CASE("gradients by address are scaled and skipped like others") {
  std::vector<Tensor> params = make_params({{5}, {300}}, 7);
  std::vector<Tensor> expected = copies(params);
  const std::vector<const void*> addresses = {params[0].grad().raw_data(),
                                              params[1].grad().raw_data()};
  Adam adam(params);
  Adam by_hand(expected);
  adam.step({.grads = addresses}, {.grad_scale = 4.0, .skip = 0.0});
  by_hand.step({.grad_scale = 4.0});
  adam.step({.grads = addresses}, {.skip = 1.0});
  CHECK(same_bits(params, expected));
}

TEST_CASE("what is not skipped has the bits of a plain store") {
  // Rounded to float32 on its way, it would be a tie and become 1.
  const double number = 1 + 0x1p-8 + 0x1p-40;
  const TensorList list = {zeros({3}, DType::bfloat16)};
  {
    const SkipScope scope(0.0);
    foreach_fill_(list, number);
  }
  CHECK(list[0].to_vector()[0] == 1 + 0x1p-7);
  {
    const SkipScope outer(1.0);
    const SkipScope inner(0.0);
    foreach_fill_(list, 5.0);
  }
  CHECK(list[0].to_vector()[0] == 1 + 0x1p-7);
  auto step = compile([&] {
    const SkipScope scope(0.0);
    foreach_fill_(list, 5.0);
    foreach_fill_(list, number);
  });
  step();
  CHECK(list[0].to_vector()[0] == 1 + 0x1p-7);
}
