// Steps with gradients of which only the addresses are known.
#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/optim/all.h"
#include "fusebook/support/error.h"
#include "support/step_testing.h"
#include "support/testing.h"

using namespace fuse;
using namespace step_testing;
using testing::Random;

namespace {

using Addresses = std::vector<const void*>;

// Gradients in memory of somebody else, which is filled anew and moves.
class Foreign {
 public:
  explicit Foreign(std::vector<Tensor> params)
      : params_(std::move(params)), memory_(3 * 4096) {}

  /// Puts these numbers elsewhere than the last ones.
  const Addresses& put(const std::vector<Tensor>& grads) {
    at_ = (at_ + 8 * 37) % (memory_.size() / 2);
    std::size_t next = at_;
    addresses_.clear();
    for (const Tensor& grad : grads) {
      if (!grad.defined()) {
        addresses_.push_back(nullptr);
        continue;
      }
      std::memcpy(memory_.data() + next, grad.raw_data(), grad.nbytes());
      addresses_.push_back(memory_.data() + next);
      next += grad.nbytes() + 8;
    }
    REQUIRE(next <= memory_.size());
    return addresses_;
  }

 private:
  std::vector<Tensor> params_;
  std::vector<std::byte> memory_;
  std::size_t at_ = 0;
  Addresses addresses_;
};

const std::vector<Shape> shapes = {{7}, {}, {3, 5}, {1}, {2, 3, 5}, {64}};

// Two groups, parameters of two dtypes.
std::vector<Adam::Group> two_groups(const std::vector<Tensor>& params) {
  const auto half = params.begin() + std::ptrdiff_t(params.size() / 2);
  return {Adam::Group(std::vector(params.begin(), half), {.lr = 0.1}),
          Adam::Group(std::vector(half, params.end()), {.lr = 0.02})};
}

std::vector<Tensor> mixed_params() {
  std::vector<Tensor> params = make_params(shapes, 1);
  for (const Tensor& param : make_params(shapes, 2, DType::bfloat16)) {
    params.push_back(param);
  }
  std::swap(params[1], params[8]);
  for (Tensor& param : params) param.set_grad({});
  return params;
}

std::vector<Tensor> random_grads(const std::vector<Tensor>& params,
                                 Random& random, double missing = 0) {
  std::vector<Tensor> grads;
  for (const Tensor& param : params) {
    grads.push_back(
        random.chance(missing)
            ? Tensor()
            : random_tensor(param.shape(), random, 0.25, param.dtype()));
  }
  return grads;
}

void set_grads(const std::vector<Tensor>& params,
               const std::vector<Tensor>& grads) {
  for (std::size_t i = 0; i < params.size(); ++i) {
    Tensor(params[i]).set_grad(grads[i]);
  }
}

std::string error_of(const std::function<void()>& action) {
  return testing::message_of<Error>(action);
}

}  // namespace

TEST_CASE("gradients by address: the bits of gradients that are set") {
  for (const Backend backend :
       {Backend::compiled, Backend::interpreted, Backend::simulated}) {
    for (const bool eager : {false, true}) {
      Random random(3);
      const auto expected_params = mixed_params();
      const auto params = copies(expected_params);
      Adam expected(two_groups(expected_params));
      Adam adam(two_groups(params));
      auto step =
          compile([&](const Addresses& grads) { adam.step({.grads = grads}); },
                  {.fullgraph = true, .backend = backend});
      Foreign foreign(params);
      for (int i = 0; i < 6; ++i) {
        const auto grads = random_grads(params, random);
        set_grads(expected_params, grads);
        expected.step();
        const Addresses& addresses = foreign.put(grads);
        eager ? adam.step({.grads = addresses}) : step(addresses);
        REQUIRE(same_bits(params, expected_params));
      }
      CHECK(adam.steps() == 6);
      if (eager) continue;
      CHECK(step.counters().launches == 6);
      CHECK(step.counters().compilations == 1);
      CHECK(step.counters().uploads == 6);
    }
  }
}

TEST_CASE("gradients by address in place need no new table") {
  const auto params = make_params(shapes, 1);
  Random random(2);
  const auto grads = random_grads(params, random);
  Addresses addresses;
  for (const Tensor& grad : grads) addresses.push_back(grad.raw_data());
  SGD sgd(params, {.momentum = 0.9});
  auto step = compile([&] { sgd.step({.grads = addresses}); });
  for (int i = 0; i < 10; ++i) step();
  CHECK(step.counters().launches == 10);
  CHECK(step.counters().uploads == 1);
}

TEST_CASE("null is a parameter without a gradient") {
  for (const bool eager : {false, true}) {
    Random random(5);
    const auto expected_params = mixed_params();
    const auto params = copies(expected_params);
    Adam expected(two_groups(expected_params));
    Adam adam(two_groups(params));
    auto step =
        compile([&](const Addresses& grads) { adam.step({.grads = grads}); });
    Foreign foreign(params);
    for (int i = 0; i < 12; ++i) {
      auto grads = random_grads(params, random, 0.3);
      grads[4] = Tensor();
      set_grads(expected_params, grads);
      expected.step();
      const Addresses& addresses = foreign.put(grads);
      eager ? adam.step({.grads = addresses}) : step(addresses);
      REQUIRE(same_bits(params, expected_params));
    }
    CHECK_FALSE(adam.state(params[4], "step").defined());
    for (const Tensor& param : params) {
      if (!adam.state(param, "step").defined()) continue;
      const std::size_t i = std::size_t(&param - params.data());
      CHECK(adam.state(param, "step").item() ==
            expected.state(expected_params[i], "step").item());
    }
  }
}

TEST_CASE("what parameters hold is neither read nor changed") {
  const Tensor param = full({2}, 1);
  Tensor(param).set_grad(full({2}, 100));
  SGD sgd({param}, {.lr = 1});
  const std::vector<float> one = {0.25F, 0.5F};
  sgd.step({.grads = Addresses{one.data()}});
  CHECK(param.to_vector() == std::vector<double>{0.75, 0.5});
  CHECK(param.grad().to_vector() == std::vector<double>{100, 100});
  sgd.step({.grads = Addresses{nullptr}});
  CHECK(param.to_vector() == std::vector<double>{0.75, 0.5});
  // Both ways in turn.
  sgd.step();
  CHECK(param.to_vector() == std::vector<double>{-99.25, -99.5});
  sgd.step({.grads = Addresses{one.data()}});
  CHECK(param.to_vector() == std::vector<double>{-99.5, -100});
  sgd.zero_grad();
  sgd.step();
  CHECK(param.to_vector() == std::vector<double>{-99.5, -100});
}

TEST_CASE("several steps in one recording, each with gradients of its own") {
  const Tensor param = full({2}, 0);
  SGD sgd({param}, {.lr = 1});
  std::vector<std::vector<float>> memory = {{1, 2}, {10, 20}, {100, 200}};
  auto step = compile(
      [&] {
        for (const auto& grads : memory) {
          sgd.step({.grads = Addresses{grads.data()}});
        }
      },
      {.fullgraph = true});
  step();
  CHECK(param.to_vector() == std::vector<double>{-111, -222});
  memory = {{1, 1}, {1, 1}, {1, 1}};
  step();
  CHECK(param.to_vector() == std::vector<double>{-114, -225});
  CHECK(step.counters().launches == 2);
  CHECK(step.counters().compilations == 1);
}

TEST_CASE("a gradient by address has the strides of its parameter") {
  const Tensor param = zeros({3, 2}).t();
  SGD sgd({param}, {.lr = 1});
  const std::vector<float> columns = {1, 2, 3, 4, 5, 6};
  sgd.step({.grads = Addresses{columns.data()}});
  CHECK(param.to_vector() == std::vector<double>{-1, -3, -5, -2, -4, -6});
}

TEST_CASE("hooks are called, and closures go on as before") {
  const Tensor param = zeros({1});
  SGD sgd({param}, {.lr = 1});
  std::string calls;
  const auto before =
      sgd.register_step_pre_hook([&](Optimizer&) { calls += "before "; });
  const auto after =
      sgd.register_step_post_hook([&](Optimizer&) { calls += "after "; });
  const std::vector<float> one = {2};
  sgd.step({.grads = Addresses{one.data()}});
  CHECK(calls == "before after ");
  const double loss = sgd.step([&] {
    Tensor(param).set_grad(full({1}, 1));
    return 0.5;
  });
  CHECK(loss == 0.5);
  CHECK(param.item() == -3);
}

TEST_CASE("what a step by address refuses, it has not begun") {
  const auto params = make_params({{2}, {3}}, 1);
  const auto before = copies(params);
  SGD sgd(params, {.momentum = 0.5});
  SGD plain(params);
  const std::vector<float> memory(3, 1);
  CHECK(error_of([&] { sgd.step({.grads = Addresses{memory.data()}}); })
            .starts_with("SGD: step expected 2 gradient addresses, one per "
                         "parameter in the order of parameters(), but got 1"));
  // In memory that the step stores into.
  const Addresses inside = {static_cast<const float*>(params[1].raw_data()) + 1,
                            memory.data()};
  CHECK(testing::contains(error_of([&] { plain.step({.grads = inside}); }),
                          "params[1] is stored but overlaps grads[0]"));
  for (const SGD* const each : {&sgd, &plain}) {
    CHECK(each->steps() == 0);
    CHECK_FALSE(each->state(params[0], "step").defined());
  }
  CHECK(same_bits(params, before));
}

TEST_CASE("a GPU wants gradients aligned to their elements") {
  const Device gpu = parse_device("cuda-sim");
  const Tensor param = zeros({2}, DType::float32, gpu);
  const Tensor memory = full({4}, 1, DType::float32, gpu);
  SGD sgd({param}, {.lr = 1});
  const auto* const first = static_cast<const char*>(memory.raw_data());
  sgd.step({.grads = Addresses{first + 4}});
  CHECK(error_of([&] { sgd.step({.grads = Addresses{first + 6}}); })
            .starts_with("step: the address of grads[0] is not aligned to the "
                         "size of its elements, as a GPU requires"));
  CHECK(sgd.steps() == 1);
  CHECK(param.to_vector() == std::vector<double>{-1, -1});
}

TEST_CASE("gradients by address: what README.md shows") {
  std::vector<float> matrix(64 * 32, 1.0F);
  std::vector<float> vector(64, 1.0F);
  const std::vector<float> grad(64 * 32, 0.5F);
  float* const weights = matrix.data();
  float* const bias = vector.data();
  const std::vector<const void*> addresses = {grad.data(), nullptr};

  std::vector<Tensor> params = {from_blob(weights, {64, 32}),
                                from_blob(bias, {64})};
  Adam opt(params, {.lr = 0.01});
  auto step = compile(
      [&](std::span<const void* const> grads) { opt.step({.grads = grads}); });
  step(addresses);  // in the order of opt.parameters(); null: no gradient

  CHECK(matrix.back() == doctest::Approx(0.99));
  CHECK(vector.back() == 1.0F);
  CHECK(step.counters().launches == 1);
}
