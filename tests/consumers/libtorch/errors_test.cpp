// Each error is one message that says what was wrong, and nothing has changed.
#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "model.h"

#include <fusebook/libtorch/all.h>

namespace {

using fuse::libtorch::Adam;
using torch::optim::AdamOptions;

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const fuse::Error& error) {
    return error.what();
  }
  return "no error";
}

void check_says(const std::string& message, const std::string& wanted) {
  CAPTURE(message);
  CHECK(message.find(wanted) != std::string::npos);
  CHECK(message.find('\n') == std::string::npos);
}

// Three steps were made, and the fourth is to go wrong.
struct Trained {
  Trained() : adam(params(), AdamOptions(0.1)) {
    for (int i = 0; i < 3; ++i) {
      give_gradients();
      adam.step();
    }
    give_gradients();
  }
  std::vector<torch::Tensor> params() { return {a, b}; }
  void give_gradients() {
    forget_gradients(params());
    (a.square().sum() + b.sum()).backward();
  }
  std::vector<torch::Tensor> everything() {
    auto all = copies_of(params());
    for (const auto& [key, state] : adam.state()) {
      const auto& own = static_cast<torch::optim::AdamParamState&>(*state);
      all.push_back(own.exp_avg().clone());
      all.push_back(own.exp_avg_sq().clone());
      all.push_back(torch::tensor(own.step()));
    }
    return all;
  }

  torch::Tensor a = torch::linspace(1, 2, 6).view({2, 3}).requires_grad_();
  torch::Tensor b = torch::linspace(3, 4, 5).requires_grad_();
  Adam adam;
};

void check_step_refuses(Trained& trained, const std::string& wanted) {
  const auto before = trained.everything();
  check_says(message_of([&] { trained.adam.step(); }), wanted);
  CHECK(equal(before, trained.everything()));
  CHECK(trained.adam.counters().launches == 3);
}

std::string made_with(const torch::Tensor& param) {
  return message_of([&] { const Adam adam({param}); });
}

}  // namespace

TEST_CASE("parameters that cannot be stepped are refused at once") {
  check_says(made_with(torch::ones({2}, torch::kInt)),
             "parameter 0 of group 0: elements of the type Int are not "
             "supported; use float, double, half or bfloat16");
  check_says(made_with(torch::ones({2}, torch::kComplexFloat)),
             "elements of the type ComplexFloat are not supported");
  check_says(made_with(torch::ones({2}, torch::kMeta)),
             "it is on meta; only tensors in host memory are supported");
  check_says(made_with(torch::ones({2, 2}).to_sparse()),
             "its layout is Sparse; make it dense with to_dense()");
  check_says(made_with(torch::ones({1}).expand({4})), "parameter 0 of group 0");
  torch::Tensor made;
  {
    const c10::InferenceMode mode;
    made = torch::ones({2});
  }
  check_says(made_with(made), "it was made in inference mode");
  const torch::Tensor twice = torch::ones({2});
  check_says(message_of([&] { const Adam adam({twice, twice}); }),
             "is the same tensor as parameter 0 of that group; list each "
             "parameter once");
}

TEST_CASE("options that make no sense are refused") {
  const torch::Tensor param = torch::ones({2}, torch::requires_grad());
  // Of the optimizers that LibTorch has, its own check comes first.
  CHECK_THROWS_AS(Adam({param}, AdamOptions(-1)), c10::Error);
  check_says(message_of([&] {
               const fuse::libtorch::RAdam radam(
                   {param}, fuse::libtorch::RAdamOptions(-1));
             }),
             "RAdam: invalid learning rate: -1");
  Adam adam({param});
  adam.param_groups()[0].set_options(
      std::make_unique<torch::optim::SGDOptions>(0.1));
  check_says(message_of([&] { adam.step(); }),
             "Adam: the options of group 0 are not AdamOptions");
}

TEST_CASE("a gradient that does not fit is refused") {
  Trained trained;
  SUBCASE("another shape") {
    trained.b.mutable_grad() = torch::ones({4});
    check_step_refuses(trained,
                       "the gradient of parameter 1 of group 0: it has shape "
                       "[4], but the parameter has shape [5]");
  }
  SUBCASE("sparse") {
    trained.a.mutable_grad() = torch::ones({2, 3}).to_sparse();
    check_step_refuses(trained,
                       "the gradient of parameter 0 of group 0: its layout is "
                       "Sparse");
  }
  SUBCASE("integers") {
    trained.b.mutable_grad() = torch::ones({5}, torch::kLong);
    check_step_refuses(trained, "elements of the type Long");
  }
  SUBCASE("on another device") {
    trained.b.mutable_grad() = torch::ones({5}, torch::kMeta);
    check_step_refuses(trained, "it is on meta");
  }
  SUBCASE("of freed memory") {
    trained.b.mutable_grad() = torch::ones({5});
    trained.b.grad().storage().unsafeGetStorageImpl()->set_nbytes(0);
    trained.b.grad().storage().unsafeGetStorageImpl()->set_data_ptr(
        at::DataPtr());
    check_step_refuses(trained, "has it been resized or freed?");
  }
  trained.give_gradients();
  trained.adam.step();
  CHECK(trained.adam.counters().launches == 4);
}

TEST_CASE("a parameter that was resized is refused") {
  Trained trained;
  trained.b.set_data(torch::ones({7}));
  trained.b.mutable_grad() = torch::ones({7});
  const auto before = trained.everything();
  check_says(message_of([&] { trained.adam.step(); }),
             "parameter 1 of group 0: it had the shape [5] and now has [7]");
  CHECK(equal(before, trained.everything()));
}

TEST_CASE("a parameter that became another dtype is refused") {
  Trained trained;
  trained.b.set_data(trained.b.detach().to(torch::kDouble));
  trained.b.mutable_grad() = torch::ones({5}, torch::kDouble);
  check_step_refuses(trained,
                     "parameter 1 of group 0: it was float32 and is float64 "
                     "now");
}

TEST_CASE("a new parameter that cannot be stepped is refused") {
  Trained trained;
  trained.adam.param_groups()[0].params().push_back(
      torch::ones({2}, torch::kShort));
  check_step_refuses(trained, "parameter 2 of group 0: elements of the type");
  trained.adam.param_groups()[0].params().pop_back();
  trained.adam.step();
  CHECK(trained.adam.counters().launches == 4);
}

TEST_CASE("a state that does not fit is refused") {
  Trained trained;
  auto& state = static_cast<torch::optim::AdamParamState&>(
      *trained.adam.state().begin()->second);
  const torch::Tensor before = state.exp_avg();
  state.exp_avg(torch::ones({9}));
  check_step_refuses(trained, "exp_avg has shape [9]");
  state.exp_avg(before);
  trained.adam.step();
  CHECK(trained.adam.counters().launches == 4);
}

TEST_CASE("a file of other parameters is refused, and nothing has changed") {
  const torch::Tensor longer = torch::ones({9}, torch::requires_grad());
  Adam other({longer, longer.detach().clone().requires_grad_()},
             AdamOptions(0.1));
  longer.sum().backward();
  other.step();
  std::stringstream file;
  torch::save(other, file);

  Trained trained;
  const auto before = trained.everything();
  check_says(message_of([&] { torch::load(trained.adam, file); }),
             "parameter 0 of group 0: exp_avg has shape [9]");
  CHECK(equal(before, trained.everything()));
  trained.adam.step();
  CHECK(trained.adam.counters().launches == 4);
}

TEST_CASE("a file of another class is refused, and nothing has changed") {
  const torch::Tensor param = torch::ones({3}, torch::requires_grad());
  torch::optim::Adam adam({param}, 0.1);
  fuse::libtorch::RAdam radam({param}, 0.1);
  param.sum().backward();
  adam.step();
  std::stringstream file;
  torch::save(adam, file);
  const torch::Tensor before = param.detach().clone();
  check_says(
      message_of([&] { torch::load(radam, file); }),
      "cannot load the optimizer: the file has options of another class, "
      "not fuse::libtorch::RAdamOptions");
  CHECK(radam.state().empty());
  CHECK(torch::equal(param, before));

  fuse::libtorch::NAdam nadam({param}, 0.1);
  nadam.step();
  std::stringstream other;
  torch::save(nadam, other);
  check_says(message_of([&] { torch::load(radam, other); }),
             "the file has fuse::libtorch::NAdamOptions, not "
             "fuse::libtorch::RAdamOptions");
}

TEST_CASE("an optimizer that was moved from says so") {
  const torch::Tensor param = torch::ones({2}, torch::requires_grad());
  Adam adam({param});
  param.sum().backward();
  Adam other = std::move(adam);
  // NOLINTNEXTLINE(bugprone-use-after-move): that is what is tried.
  check_says(message_of([&] { adam.step(); }), "this optimizer was moved from");
  check_says(message_of([&] { adam.use_opmath(); }),
             "this optimizer was moved from");
  other.step();
  CHECK(other.counters().launches == 1);
}

TEST_CASE("an exception of the closure goes through, and nothing has changed") {
  Trained trained;
  const auto before = trained.everything();
  CHECK_THROWS_WITH_AS(trained.adam.step([]() -> torch::Tensor {
    throw std::runtime_error("out of data");
  }),
                       "out of data", std::runtime_error);
  CHECK(equal(before, trained.everything()));
  CHECK(trained.adam.counters().launches == 3);
  trained.adam.step();
  CHECK(trained.adam.counters().launches == 4);
}

TEST_CASE("messages name where the optimizer was made") {
  const torch::Tensor param = torch::ones({2}, torch::requires_grad());
  Adam adam({param});
  param.sum().backward();
  adam.step();
  CHECK(adam.report().find("errors_test.cpp") != std::string::npos);
}
