// What may change between two steps: gradients, parameters, options, states.
#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "both.h"
#include "model.h"

namespace {

using torch::optim::AdamOptions;

auto& state_of(torch::optim::Optimizer& optimizer, const torch::Tensor& param) {
  using Key = fuse::libtorch::detail::StateMap::key_type;
  const auto key =
      fuse::libtorch::detail::key_of<Key>(param.unsafeGetTensorImpl());
  return static_cast<torch::optim::AdamParamState&>(*optimizer.state().at(key));
}

// Two models that take the same steps, by LibTorch's Adam and by ours.
struct Pair {
  explicit Pair(const AdamOptions& options = AdamOptions(0.01))
      : theirs(make_model(torch::kDouble)),
        ours(make_model(torch::kDouble)),
        data(make_data(torch::kDouble)),
        their_adam(theirs->parameters(), options),
        our_adam(ours->parameters(), options) {}

  void train_both(int steps) {
    for (int i = 0; i < steps; ++i) {
      train(theirs, data, their_adam);
      train(ours, data, our_adam);
    }
  }
  void check_near() const {
    for (std::size_t i = 0; i < ours->parameters().size(); ++i) {
      CAPTURE(i);
      CHECK(torch::allclose(ours->parameters()[i], theirs->parameters()[i],
                            1e-9, 1e-11));
    }
  }
  template <class Change>
  void on_both(Change change) {
    change(theirs, their_adam);
    change(ours, our_adam);
  }

  torch::nn::Sequential theirs;
  torch::nn::Sequential ours;
  std::pair<torch::Tensor, torch::Tensor> data;
  torch::optim::Adam their_adam;
  fuse::libtorch::Adam our_adam;
};

}  // namespace

TEST_CASE("gradients at new addresses are one launch, and no recompile") {
  Pair pair;
  std::vector<torch::Tensor> kept;  // so that no address comes back
  std::set<const void*> addresses;
  std::vector<const void*> places;
  for (const auto& each : pair.ours->parameters()) {
    places.push_back(each.data_ptr());
  }
  for (int i = 0; i < 20; ++i) {
    pair.train_both(1);
    for (const auto& each : pair.ours->parameters()) {
      kept.push_back(each.grad());
      addresses.insert(each.grad().data_ptr());
    }
  }
  CHECK(addresses.size() == kept.size());
  CHECK(pair.our_adam.counters().launches == 20);
  CHECK(pair.our_adam.counters().compilations == 1);
  CHECK(pair.our_adam.counters().recompiles == 0);
  CHECK(pair.our_adam.counters().graph_breaks == 0);
  CHECK(pair.our_adam.recompile_reports().empty());
  pair.check_near();
  // Where they were, and nothing but what Adam itself moves: four arrays in and
  // three out, and each parameter's count in and out.
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    CHECK(pair.ours->parameters()[i].data_ptr() == places[i]);
    elements += pair.ours->parameters()[i].numel();
  }
  CHECK(pair.our_adam.counters().bytes_moved ==
        20 * (7 * 8 * elements + 2 * 8 * std::int64_t(places.size())));
}

TEST_CASE("states are shown where they are stepped") {
  Pair pair;
  pair.train_both(2);
  const torch::Tensor param = pair.ours->parameters()[0];
  const torch::Tensor seen = state_of(pair.our_adam, param).exp_avg();
  const torch::Tensor before = seen.clone();
  pair.train_both(1);
  CHECK(state_of(pair.our_adam, param).step() == 3);
  CHECK(state_of(pair.our_adam, param).exp_avg().is_same(seen));
  CHECK(!torch::equal(seen, before));
  // Written in place, it is what the next step reads.
  pair.on_both([](auto& model, auto& adam) {
    state_of(adam, model->parameters()[0]).exp_avg().zero_();
  });
  pair.train_both(1);
  pair.check_near();
}

TEST_CASE("a program may put other states in their place") {
  Pair pair;
  pair.train_both(3);
  pair.on_both([](auto& model, auto& adam) {
    const auto params = model->parameters();
    auto& first = state_of(adam, params[2]);
    first.exp_avg(torch::full_like(params[2], 0.5));
    first.step(7);
    adam.state().erase(fuse::libtorch::detail::key_of<
                       fuse::libtorch::detail::StateMap::key_type>(
        params[0].unsafeGetTensorImpl()));
    // Two of one shape change places.
    std::swap(state_of(adam, params[1]).exp_avg(),
              state_of(adam, params[3]).exp_avg());
  });
  pair.train_both(3);
  pair.check_near();
  CHECK(state_of(pair.our_adam, pair.ours->parameters()[0]).step() == 3);
  CHECK(state_of(pair.our_adam, pair.ours->parameters()[2]).step() == 10);
  CHECK(pair.our_adam.counters().recompiles == 0);
}

TEST_CASE("a state that was replaced keeps its address until the next step") {
  Pair pair;
  pair.train_both(2);
  const torch::Tensor param = pair.ours->parameters()[0];
  const auto* const before =
      state_of(pair.our_adam, param).exp_avg().unsafeGetTensorImpl();
  for (int i = 0; i < 100; ++i) {
    pair.on_both([](auto& model, auto& adam) {
      const auto first = model->parameters()[0];
      state_of(adam, first).exp_avg(torch::full_like(first, 0.5));
    });
    REQUIRE(state_of(pair.our_adam, param).exp_avg().unsafeGetTensorImpl() !=
            before);
  }
  pair.train_both(3);
  pair.check_near();
}

TEST_CASE("parameters are frozen, and come back") {
  Pair pair;
  pair.train_both(3);
  const auto freeze = [](bool frozen) {
    return [frozen](auto& model, auto&) {
      model->parameters()[0].requires_grad_(!frozen);
      model->parameters()[3].requires_grad_(!frozen);
    };
  };
  pair.on_both(freeze(true));
  const torch::Tensor before = pair.ours->parameters()[0].detach().clone();
  pair.train_both(4);
  CHECK(torch::equal(pair.ours->parameters()[0], before));
  pair.on_both(freeze(false));
  pair.train_both(4);
  pair.check_near();
  CHECK(state_of(pair.our_adam, pair.ours->parameters()[0]).step() == 7);
  CHECK(pair.our_adam.counters().launches == 11);
  CHECK(pair.our_adam.counters().recompiles == 0);
}

TEST_CASE("parameters and groups are added on the way") {
  auto theirs = make_model(torch::kDouble);
  auto ours = make_model(torch::kDouble);
  const auto data = make_data(torch::kDouble);
  const auto part = [](const torch::nn::Sequential& model, int first, int end) {
    const auto all = model->parameters();
    return std::vector<torch::Tensor>(all.begin() + first, all.begin() + end);
  };
  torch::optim::Adam their_adam(part(theirs, 0, 2), AdamOptions(0.01));
  fuse::libtorch::Adam our_adam(part(ours, 0, 2), AdamOptions(0.01));
  const auto both = [&](auto change) {
    change(theirs, their_adam);
    change(ours, our_adam);
    for (int i = 0; i < 3; ++i) {
      train(theirs, data, their_adam);
      train(ours, data, our_adam);
    }
  };
  both([](auto&, auto&) {});
  both([&](auto& model, auto& adam) {
    for (const auto& each : part(model, 2, 4)) {
      adam.param_groups()[0].params().push_back(each);
    }
  });
  CHECK(our_adam.counters().recompiles == 0);
  // Numbers of its own: the first such group is another computation.
  both([&](auto& model, auto& adam) {
    adam.add_param_group(torch::optim::OptimizerParamGroup(
        part(model, 4, 6),
        std::make_unique<AdamOptions>(AdamOptions(0.02).betas({0.7, 0.9}))));
  });
  CHECK(our_adam.counters().recompiles == 1);
  both([&](auto&, auto& adam) {  // and taken away
    auto& params = adam.param_groups()[0].params();
    params.erase(params.begin());
  });
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(torch::allclose(ours->parameters()[i], theirs->parameters()[i], 1e-9,
                          1e-11));
  }
  CHECK(our_adam.counters().launches == 12);
  CHECK(our_adam.counters().recompiles == 1);
}

TEST_CASE("options of a group move, by hand and by LibTorch's schedulers") {
  Pair pair;
  torch::optim::StepLR their_decay(pair.their_adam, 3, 0.5);
  torch::optim::StepLR our_decay(pair.our_adam, 3, 0.5);
  for (int i = 0; i < 10; ++i) {
    pair.train_both(1);
    their_decay.step();
    our_decay.step();
  }
  pair.check_near();
  CHECK(pair.our_adam.param_groups()[0].options().get_lr() == 0.01 / 8);
  pair.on_both([](auto&, auto& adam) {
    auto& options = static_cast<AdamOptions&>(adam.param_groups()[0].options());
    options.weight_decay(0.1).amsgrad(true);
  });
  // LibTorch's has no maximum of the steps before; a program gives it one.
  pair.on_both([](auto& model, auto& adam) {
    for (const auto& each : model->parameters()) {
      state_of(adam, each).max_exp_avg_sq(torch::zeros_like(each));
    }
  });
  pair.train_both(4);
  pair.check_near();
  CHECK(pair.our_adam.counters().launches == 14);
}

#if __has_include(<torch/optim/schedulers/reduce_on_plateau_scheduler.h>)
TEST_CASE("ReduceLROnPlateau moves the rate") {
  Pair pair;
  using torch::optim::ReduceLROnPlateauScheduler;
  const auto mode = ReduceLROnPlateauScheduler::min;
  ReduceLROnPlateauScheduler theirs(pair.their_adam, mode, 0.1F, 1);
  ReduceLROnPlateauScheduler ours(pair.our_adam, mode, 0.1F, 1);
  for (int i = 0; i < 8; ++i) {
    pair.train_both(1);
    theirs.step(1);
    ours.step(1);
  }
  pair.check_near();
  CHECK(pair.our_adam.param_groups()[0].options().get_lr() < 0.005);
  CHECK(pair.our_adam.counters().recompiles == 0);
}
#endif

TEST_CASE("a closure computes the loss") {
  Pair pair;
  const auto closure_of = [&](auto& model) {
    return [&] {
      forget_gradients(model->parameters());
      const auto loss =
          torch::mse_loss(model->forward(pair.data.first), pair.data.second);
      loss.backward();
      return loss;
    };
  };
  for (int i = 0; i < 3; ++i) {
    const torch::NoGradGuard guard;  // a closure records all the same
    const auto theirs = pair.their_adam.step(closure_of(pair.theirs));
    const auto ours = pair.our_adam.step(closure_of(pair.ours));
    CHECK(torch::allclose(theirs, ours));
  }
  CHECK(!pair.our_adam.step().defined());
}

TEST_CASE("parameters that get other memory are found there") {
  Pair pair;
  pair.train_both(2);
  pair.on_both([](auto& model, auto&) {
    auto params = model->parameters();
    params[0].set_data(params[0].detach().clone());
    params[2].set_data(params[2].detach().t().contiguous().t());
  });
  pair.train_both(3);
  pair.check_near();
  CHECK(pair.our_adam.counters().launches == 5);
}

TEST_CASE("gradients of another order are read as they are") {
  Pair pair;
  for (int i = 0; i < 4; ++i) {
    const auto turn = [&](auto& model, auto& adam) {
      forget_gradients(model->parameters());
      torch::mse_loss(model->forward(pair.data.first), pair.data.second)
          .backward();
      if (i == 2) {
        torch::Tensor weight = model->parameters()[2];
        weight.mutable_grad() = weight.grad().t().contiguous().t();
      }
      adam.step();
    };
    pair.on_both(turn);
  }
  pair.check_near();
  CHECK(pair.our_adam.counters().launches == 4);
}

TEST_CASE("a parameter that was stepped is no longer what backward has saved") {
  torch::Tensor x = torch::ones({3}, torch::requires_grad());
  fuse::libtorch::SGD sgd({x}, torch::optim::SGDOptions(0.1));
  const auto loss = (x * x).sum();
  loss.backward({}, true);
  const auto version = x._version();
  sgd.step();
  CHECK(x._version() == version + 1);
  CHECK_THROWS_AS(loss.backward(), c10::Error);
}

TEST_CASE("an optimizer is moved, with its state") {
  Pair pair;
  pair.train_both(2);
  fuse::libtorch::Adam moved(std::move(pair.our_adam));
  for (int i = 0; i < 2; ++i) {
    train(pair.theirs, pair.data, pair.their_adam);
    train(pair.ours, pair.data, moved);
  }
  pair.check_near();
  CHECK(moved.counters().launches == 4);
  CHECK(moved.counters().compilations == 1);
}

TEST_CASE("16 bits are updated in float32, also in groups that are added") {
  const auto make = [](std::int64_t n) {
    return torch::linspace(-1, 1, n).to(torch::kBFloat16).requires_grad_();
  };
  std::vector<torch::Tensor> params = {make(100), make(33)};
  fuse::libtorch::Adam adam({params[0]}, AdamOptions(0.01));
  adam.use_opmath();
  adam.add_param_group(torch::optim::OptimizerParamGroup({params[1]}));
  // In float32, and rounded by hand after each step.
  std::vector<torch::Tensor> wide;
  for (const auto& each : params) {
    wide.push_back(each.detach().to(torch::kFloat).requires_grad_());
  }
  fuse::libtorch::Adam oracle(wide, AdamOptions(0.01));
  const auto round = [](torch::Tensor tensor) {
    const torch::NoGradGuard guard;
    tensor.copy_(tensor.to(torch::kBFloat16).to(torch::kFloat));
  };
  bool differs = false;
  for (int step = 0; step < 8; ++step) {
    if (step == 6) adam.use_opmath(false);
    for (std::size_t i = 0; i < params.size(); ++i) {
      const auto gradient =
          torch::cos(torch::arange(params[i].numel()) + double(step));
      params[i].mutable_grad() = gradient.to(torch::kBFloat16);
      wide[i].mutable_grad() = params[i].grad().to(torch::kFloat);
    }
    adam.step();
    oracle.step();
    for (std::size_t i = 0; i < params.size(); ++i) {
      round(wide[i]);
      round(state_of(oracle, wide[i]).exp_avg());
      round(state_of(oracle, wide[i]).exp_avg_sq());
      const bool same = torch::equal(params[i].to(torch::kFloat), wide[i]);
      if (step < 6) CHECK(same);
      differs = differs || !same;
    }
  }
  CHECK(differs);  // without
  CHECK(state_of(adam, params[0]).exp_avg().dtype() == torch::kBFloat16);
  CHECK(adam.counters().launches == 8);
}
