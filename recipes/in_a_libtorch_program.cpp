#include <torch/torch.h>

#include "fusebook/fusebook.h"
#include "fusebook/libtorch/all.h"

using namespace fuse;

// %%
// In a LibTorch program
// =====================
//
// A program that trains with LibTorch, the C++ side of PyTorch, can keep its
// tensors, its model and its loop, and yet make its steps here. One line
// changes, that of the :term:`optimizer`. We train a model with
// ``torch::optim::Adam`` and a twin of it with ours, and compare what they
// learn, and how long a step takes.

// %%
// The model is LibTorch's: a perceptron. The seed makes all models equal that
// are built in this way.
static torch::nn::Sequential make_model() {
  torch::manual_seed(0);
  return torch::nn::Sequential(torch::nn::Linear(8, 64), torch::nn::Tanh(),
                               torch::nn::Linear(64, 64), torch::nn::Tanh(),
                               torch::nn::Linear(64, 1));
}

static void in_a_libtorch_program(const Options&) {
  step("The models");
  // They learn a wave over :constant:`eight <torch::rand({64, #}>` inputs.
  // ``train`` takes any ``torch::optim::Optimizer``: gradients are LibTorch's,
  // and so is the loop.
  auto model = make_model(), twin = make_model();
  const auto input = torch::rand({64, 8});
  const auto target = torch::sin(2 * input.sum(1, true));
  const auto train = [&](auto& net, torch::optim::Optimizer& optimizer) {
    optimizer.zero_grad();
    const torch::Tensor loss = torch::mse_loss(net->forward(input), target);
    loss.backward();
    optimizer.step();
    return Within{loss.item<double>(), 1e-9, 2};
  };
  print("parameters: ", model->parameters().size(), " tensors each");

  step("One line is another");
  // Ours is a subclass of LibTorch's, with the same arguments. It copies
  // nothing: a step reads the gradients and changes the parameters where
  // LibTorch has them.
  torch::optim::Adam theirs(model->parameters(), 0.003);
  fuse::libtorch::Adam ours(twin->parameters(), 0.003);
  print_columns("step", "LibTorch loss", "Fusebook loss");
  for (int n = 0; n <= 300; ++n) {
    const Within a = train(model, theirs), b = train(twin, ours);
    if (n % 20 == 0) print_row(n, a, b);
  }

  step("What was launched");
  // .. recipe-plot:: One line is another
  //    :alt: The curves of both fall together and cannot be told apart.
  //
  //    The table above, drawn: one curve covers the other.
  //
  // Both learn the same, up to rounding: LibTorch works the formula out in
  // another order. Its step calls one operation after the other, for one tensor
  // after the other. Ours was recorded in the first step, and compiled to one
  // :term:`kernel` for all tensors; every step since then was one
  // :term:`launch` of it.
  const Counters& counters = ours.counters();
  print("launches in 301 steps: ", counters.launches);
  print("compilations:          ", counters.compilations);
  print("recompiles:            ", counters.recompiles);

  step("The time of a step");
  // Where tensors are many and small, nearly all the time goes into calls. So
  // we time a step of :constant:`a thousand <many(#>` of them, in turns.
  const auto many = [](std::size_t count) {
    std::vector<torch::Tensor> params(count);
    for (torch::Tensor& each : params) {
      each = torch::rand({64});
      each.mutable_grad() = torch::rand({64});
    }
    return params;
  };
  torch::optim::Adam slow(many(1000));
  fuse::libtorch::Adam fast(many(1000));
  const auto t = interleaved({[&] { slow.step(); }, [&] { fast.step(); }});
  print("LibTorch: ", measured("libtorch_us", t[0].median_us(), "us"));
  print("Fusebook: ", measured("fusebook_us", t[1].median_us(), "us"));
  print("speedup:  ", ratio("speedup", "libtorch_us", "fusebook_us"));
}

// %%
// Change it
// ---------
//
// .. exercise:: radam
//
//    LibTorch has no RAdam. Let ``fuse::libtorch::RAdam`` train the twin. Is
//    its step one launch, too?
//
// .. exercise:: schedule
//
//    Let a ``torch::optim::StepLR`` of LibTorch halve our rate after every
//    :constant:`100 <StepLR decay(ours, #>` steps. Is anything compiled again?
//
// .. exercise:: large_tensors
//
//    Time a step of :constant:`ten <slow(many(#>` matrices with
//    :constant:`1024 <rand({#, 1024})>` rows and columns in place of the small
//    tensors. What is left of the speedup, and why?

int main(int argc, char** argv) {
  return run_recipe(argc, argv, in_a_libtorch_program);
}
