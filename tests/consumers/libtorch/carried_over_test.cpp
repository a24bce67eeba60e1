// State goes from LibTorch's optimizers to ours and back in the middle of a run.
#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <sstream>
#include <vector>

#include "both.h"
#include "model.h"

namespace {

void carry(torch::optim::Optimizer& from, torch::optim::Optimizer& to) {
  torch::serialize::OutputArchive saved;
  from.save(saved);
  std::stringstream file;
  saved.save_to(file);
  torch::serialize::InputArchive loaded;
  loaded.load_from(file);
  to.load(loaded);
}

// 40 steps, of which each optimizer makes ten in turn.
template <class First, class Second, class Options>
std::vector<torch::Tensor> trained(const Options& options) {
  auto model = make_model(torch::kDouble);
  const auto data = make_data(torch::kDouble);
  First first(model->parameters(), options);
  Second second(model->parameters(), options);
  torch::optim::Optimizer* turn[2] = {&first, &second};
  for (int part = 0; part < 4; ++part) {
    if (part > 0) carry(*turn[(part + 1) % 2], *turn[part % 2]);
    for (int i = 0; i < 10; ++i) train(model, data, *turn[part % 2]);
  }
  return copies_of(model->parameters());
}

}  // namespace

TEST_CASE_TEMPLATE("state is carried over in both directions", Kind,
                   EVERY_ONE) {
  using Theirs = typename Kind::Theirs;
  using Ours = typename Kind::Ours;
  const auto options = Kind::options();
  const auto theirs = trained<Theirs, Theirs>(options);
  const auto mixed = trained<Theirs, Ours>(options);
  const auto turned = trained<Ours, Theirs>(options);
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    CAPTURE(i);
    CHECK(torch::allclose(theirs[i], mixed[i], 1e-9, 1e-11));
    CHECK(torch::allclose(theirs[i], turned[i], 1e-9, 1e-11));
  }
}

TEST_CASE("files are LibTorch's, and saving and loading changes no bit") {
  const auto options = torch::optim::AdamOptions(0.01).amsgrad(true);
  auto model = make_model();
  auto other = make_model();
  const auto data = make_data(torch::kFloat);
  fuse::libtorch::Adam first(model->parameters(), options);
  fuse::libtorch::Adam second(other->parameters(), options);
  for (int i = 0; i < 5; ++i) train(model, data, first);

  std::stringstream file;
  torch::save(first, file);
  torch::load(second, file);
  for (std::size_t i = 0; i < model->parameters().size(); ++i) {
    const torch::NoGradGuard guard;
    other->parameters()[i].copy_(model->parameters()[i]);
  }
  for (int i = 0; i < 5; ++i) {
    train(model, data, first);
    train(other, data, second);
  }
  CHECK(equal(model->parameters(), other->parameters()));
  CHECK(second.counters().launches == 5);
  CHECK(second.counters().compilations == 1);

  auto third = make_model();
  torch::optim::Adam theirs(third->parameters(), options);
  std::stringstream again;
  torch::save(second, again);
  torch::load(theirs, again);
  for (const auto& [key, state] : theirs.state()) {
    CHECK(static_cast<torch::optim::AdamParamState&>(*state).step() == 10);
  }
}
