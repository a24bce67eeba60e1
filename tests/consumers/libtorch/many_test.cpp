// So many parameters that several threads look at them.
#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "model.h"

#include <fusebook/libtorch/all.h>

namespace {

constexpr std::size_t count = 1100;

using torch::optim::AdamOptions;
using torch::optim::AdamParamState;

std::vector<torch::Tensor> make_params() {
  std::vector<torch::Tensor> made;
  for (std::size_t i = 0; i < count; ++i) {
    made.push_back(torch::full({3}, double(i) / 100, torch::kDouble));
  }
  return made;
}

AdamParamState& state_of(torch::optim::Optimizer& adam,
                         const torch::Tensor& param) {
  using Key = fuse::libtorch::detail::StateMap::key_type;
  return static_cast<AdamParamState&>(*adam.state().at(
      fuse::libtorch::detail::key_of<Key>(param.unsafeGetTensorImpl())));
}

// The same steps by LibTorch's Adam and by ours.
struct Many {
  // New gradients, for all but every `without`th parameter.
  void step(int turn, std::size_t without = count + 1) {
    for (std::size_t i = 0; i < count; ++i) {
      const bool none = (i + 1) % without == 0;
      const auto grad =
          none ? torch::Tensor()
               : torch::full({3}, double(i % 7) - turn, torch::kDouble);
      theirs[i].mutable_grad() = grad;
      ours[i].mutable_grad() = none ? grad : grad.clone();
    }
    their_adam.step();
    our_adam.step();
  }
  void check_near() {
    for (std::size_t i = 0; i < count; ++i) {
      CAPTURE(i);
      REQUIRE(torch::allclose(ours[i], theirs[i], 1e-9, 1e-11));
      REQUIRE(state_of(our_adam, ours[i]).step() ==
              state_of(their_adam, theirs[i]).step());
    }
  }

  std::vector<torch::Tensor> theirs = make_params();
  std::vector<torch::Tensor> ours = make_params();
  torch::optim::Adam their_adam{theirs, AdamOptions(0.01)};
  fuse::libtorch::Adam our_adam{ours, AdamOptions(0.01)};
};

}  // namespace

TEST_CASE("a thousand parameters are one launch, and each is found") {
  Many many;
  for (int turn = 0; turn < 4; ++turn) many.step(turn);
  many.check_near();
  many.step(4, 3);  // the first step without some of the gradients
  many.step(5, 3);
  const auto version = many.ours[1099]._version();
  const auto without = many.ours[1097]._version();  // the 1098th, 3 * 366
  many.step(6, 3);
  CHECK(many.ours[1099]._version() == version + 1);
  CHECK(many.ours[1097]._version() == without);
  many.step(7);
  many.check_near();
  CHECK(many.our_adam.counters().launches == 8);
  CHECK(many.our_adam.counters().recompiles == 0);
}

TEST_CASE("what changed is found wherever it is among a thousand") {
  Many many;
  for (int turn = 0; turn < 3; ++turn) many.step(turn);
  for (const std::size_t i : {0UL, 31UL, 32UL, 557UL, 824UL, 825UL, 1099UL}) {
    CAPTURE(i);
    for (auto* const each : {&many.theirs[i], &many.ours[i]}) {
      each->set_data(each->detach().clone());
    }
    state_of(many.their_adam, many.theirs[i]).step(11);
    state_of(many.our_adam, many.ours[i]).step(11);
    many.step(3);
    many.step(4, i + 1);
    many.step(5);
    many.check_near();
  }
  CHECK(many.our_adam.counters().recompiles == 0);
}

TEST_CASE("states that are erased begin anew, those of others stay") {
  Many many;
  for (int turn = 0; turn < 3; ++turn) many.step(turn);
  const auto erase = [](auto& adam, const torch::Tensor& param) {
    using Key = fuse::libtorch::detail::StateMap::key_type;
    adam.state().erase(
        fuse::libtorch::detail::key_of<Key>(param.unsafeGetTensorImpl()));
  };
  erase(many.their_adam, many.theirs[700]);
  erase(many.our_adam, many.ours[700]);
  // Parameters that are taken away leave their states.
  for (auto* const adam : std::initializer_list<torch::optim::Optimizer*>{
           &many.their_adam, &many.our_adam}) {
    adam->param_groups()[0].params().erase(
        adam->param_groups()[0].params().begin() + 5);
  }
  for (int turn = 3; turn < 7; ++turn) many.step(turn);
  many.check_near();
  CHECK(many.our_adam.state().size() == count);
  CHECK(state_of(many.our_adam, many.ours[700]).step() == 4);
  CHECK(state_of(many.our_adam, many.ours[5]).step() == 3);
}

TEST_CASE("a gradient that does not fit is found among a thousand") {
  Many many;
  for (int turn = 0; turn < 3; ++turn) many.step(turn);
  for (const std::size_t i : {0UL, 824UL, 1099UL}) {
    const auto before = copies_of(many.ours);
    const torch::Tensor grad = many.ours[i].grad();
    many.ours[i].mutable_grad() = torch::ones({4}, torch::kDouble);
    CHECK_THROWS_WITH_AS(many.our_adam.step(),
                         doctest::Contains(("parameter " + std::to_string(i) +
                                            " of group 0: it has shape [4]")
                                               .c_str()),
                         fuse::Error);
    many.ours[i].mutable_grad() = grad;
    CHECK(equal(before, many.ours));
    CHECK(state_of(many.our_adam, many.ours[3]).step() == 3);
  }
  many.step(3);
  many.check_near();
}
