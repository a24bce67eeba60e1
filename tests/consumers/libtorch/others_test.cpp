// The optimizers that LibTorch does not have: bit for bit those of Fusebook, which
// are compared with PyTorch elsewhere.
#include <doctest/doctest.h>
#include <fusebook/fusebook.h>
#include <fusebook/libtorch/all.h>
#include <torch/torch.h>

#include <sstream>
#include <string>
#include <vector>

#include "model.h"

namespace {

template <class Our, class Plain>
struct Row {
  using Ours = Our;
  using Own = Plain;
  using Options = typename Our::Options;
  static constexpr int launches = 1;  // of a step
  static constexpr int compilations = 1;
};

struct Adadelta : Row<fuse::libtorch::Adadelta, fuse::Adadelta> {
  static Options theirs() { return Options(0.5).rho(0.8).eps(1e-5); }
  static auto own() {
    return fuse::AdadeltaOptions{.lr = 0.5, .rho = 0.8, .eps = 1e-5};
  }
};
struct Adafactor : Row<fuse::libtorch::Adafactor, fuse::Adafactor> {
  static constexpr int launches = 4;      // one of the parameters is a matrix
  static constexpr int compilations = 2;  // the means are not compiled
  static Options theirs() { return Options(0.1).eps({1e-6, 0.01}).d(1.5); }
  static auto own() {
    return fuse::AdafactorOptions{.lr = 0.1, .eps = {1e-6, 0.01}, .d = 1.5};
  }
};
struct AdafactorOfNoEps : Row<fuse::libtorch::Adafactor, fuse::Adafactor> {
  static constexpr int launches = 4;
  static constexpr int compilations = 2;
  static Options theirs() { return Options().weight_decay(0.1); }
  static auto own() { return fuse::AdafactorOptions{.weight_decay = 0.1}; }
};
struct Adamax : Row<fuse::libtorch::Adamax, fuse::Adamax> {
  static Options theirs() { return Options().betas({0.8, 0.9}); }
  static auto own() { return fuse::AdamaxOptions{.betas = {0.8, 0.9}}; }
};
struct AdEMAMix : Row<fuse::libtorch::AdEMAMix, fuse::AdEMAMix> {
  static Options theirs() {
    return Options(0.01).betas({0.8, 0.9, 0.99}).t_alpha(8).t_beta3(6);
  }
  static auto own() {
    return fuse::AdEMAMixOptions{
        .lr = 0.01, .betas = {0.8, 0.9, 0.99}, .t_alpha = 8.0, .t_beta3 = 6.0};
  }
};
struct ASGD : Row<fuse::libtorch::ASGD, fuse::ASGD> {
  static Options theirs() { return Options(0.1).lambd(0.01).t0(2); }
  static auto own() {
    return fuse::ASGDOptions{.lr = 0.1, .lambd = 0.01, .t0 = 2.0};
  }
};
struct LAMB : Row<fuse::libtorch::LAMB, fuse::LAMB> {
  static Options theirs() { return Options(0.01).bias_correction(false); }
  static auto own() {
    return fuse::LAMBOptions{.lr = 0.01, .bias_correction = false};
  }
};
struct LARS : Row<fuse::libtorch::LARS, fuse::LARS> {
  static Options theirs() { return Options(0.5).nesterov(true); }
  static auto own() { return fuse::LARSOptions{.lr = 0.5, .nesterov = true}; }
};
struct NAdam : Row<fuse::libtorch::NAdam, fuse::NAdam> {
  static Options theirs() {
    return Options().weight_decay(0.1).decoupled_weight_decay(true);
  }
  static auto own() {
    return fuse::NAdamOptions{.weight_decay = 0.1,
                              .decoupled_weight_decay = true};
  }
};
struct RAdam : Row<fuse::libtorch::RAdam, fuse::RAdam> {
  static Options theirs() { return Options(0.01).weight_decay(0.1); }
  static auto own() {
    return fuse::RAdamOptions{.lr = 0.01, .weight_decay = 0.1};
  }
};
struct Rprop : Row<fuse::libtorch::Rprop, fuse::Rprop> {
  static Options theirs() { return Options().etas({0.4, 1.3}); }
  static auto own() { return fuse::RpropOptions{.etas = {0.4, 1.3}}; }
};

#define EVERY_OTHER                                                          \
  Adadelta, Adafactor, AdafactorOfNoEps, Adamax, AdEMAMix, ASGD, LAMB, LARS, \
      NAdam, RAdam, Rprop

struct Params {
  std::vector<torch::Tensor> all = {
      torch::sin(torch::arange(0, 35, torch::kFloat)).view({5, 7}),
      torch::cos(torch::arange(0, 11, torch::kFloat))};
  std::vector<torch::Tensor> grads(int step) const {
    std::vector<torch::Tensor> found;
    for (const torch::Tensor& each : all) {
      found.push_back(torch::sin(each.detach() * 3 + 0.5 * step));
    }
    return found;
  }
  void give(int step) {
    const auto given = grads(step);
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].mutable_grad() = given[i];
    }
  }
};

}  // namespace

TEST_CASE_TEMPLATE("steps have the bits of Fusebook's", Kind, EVERY_OTHER) {
  Params theirs;
  Params own;
  typename Kind::Ours ours(theirs.all, Kind::theirs());
  std::vector<fuse::Tensor> views;
  for (const auto& each : own.all) views.push_back(fuse::libtorch::view(each));
  typename Kind::Own plain(views, Kind::own());
  auto compiled = fuse::compile([&] { plain.step(); });
  const auto before = copies_of(theirs.all);
  for (int i = 0; i < 12; ++i) {
    theirs.give(i);
    const auto given = own.grads(i);
    for (std::size_t k = 0; k < views.size(); ++k) {
      views[k].set_grad(fuse::libtorch::view(given[k]));
    }
    ours.step();
    compiled();
    REQUIRE(equal(theirs.all, own.all));
  }
  CHECK(!equal(theirs.all, before));
  CHECK(ours.counters().launches == 12 * Kind::launches);
  CHECK(ours.counters().recompiles == 0);
  CHECK(ours.counters().compilations == Kind::compilations);
}

TEST_CASE_TEMPLATE("a run goes on from a file", Kind, EVERY_OTHER) {
  Params first;
  Params second;
  typename Kind::Ours one(first.all, Kind::theirs());
  typename Kind::Ours other(second.all);  // options come from the file, or not
  for (auto& group : other.param_groups()) {
    group.set_options(std::make_unique<typename Kind::Options>(Kind::theirs()));
  }
  for (int i = 0; i < 5; ++i) {
    first.give(i);
    one.step();
  }
  std::stringstream file;
  torch::save(one, file);
  for (std::size_t k = 0; k < first.all.size(); ++k) {
    second.all[k].copy_(first.all[k]);
  }
  torch::load(other, file);
  for (int i = 5; i < 10; ++i) {
    first.give(i);
    second.give(i);
    one.step();
    other.step();
    REQUIRE(equal(first.all, second.all));
  }
}

TEST_CASE("groups have options of their own, and schedulers move them") {
  Params params;
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<torch::Tensor>{params.all[0]},
                      std::make_unique<fuse::libtorch::RAdamOptions>(0.25));
  groups.emplace_back(std::vector<torch::Tensor>{params.all[1]});
  fuse::libtorch::RAdam radam(groups, fuse::libtorch::RAdamOptions(0.5));
  CHECK(radam.param_groups()[0].options().get_lr() == 0.25);
  CHECK(radam.param_groups()[1].options().get_lr() == 0.5);
  torch::optim::StepLR halved(radam, 1, 0.5);
  const auto before = copies_of(params.all);
  params.give(0);
  radam.step();
  // The first step of RAdam is one of momentum alone: the rate times the gradient.
  const auto given = Params().grads(0);
  CHECK(torch::allclose(params.all[0], before[0] - 0.25 * given[0]));
  CHECK(torch::allclose(params.all[1], before[1] - 0.5 * given[1]));
  halved.step();
  halved.step();
  CHECK(radam.param_groups()[0].options().get_lr() == 0.125);
  params.give(1);
  radam.step();
  CHECK(radam.counters().launches == 2);
  CHECK(radam.counters().recompiles == 0);
}
