#include "fusebook/fusebook.h"

using namespace fuse;

// %%
// Write your own optimizer
// ========================
//
// The library has the optimizers of ``torch.optim``. Lion is not among them: a
// search over programs found it (`Chen and others, 2023
// <https://arxiv.org/abs/2302.06675>`_), and its formula is short. Usually you
// would now write a :term:`kernel`; here you are done: we write the formula
// with :doc:`foreach_map`, ``compile`` makes one kernel of it, and then Lion
// trains beside Adam.

// %%
// Lion goes along the *sign* of a mean m of the gradients g, so every step has
// the same size whatever the gradients are, and it keeps one list besides the
// parameters p where Adam keeps a second one:
//
// .. code-block:: cpp
//
//    c = lerp(m, g, 0.1);
//    p = p - lr * sign(c);
//    m = lerp(m, g, 0.01);
//
// The mean that it looks at and the one that it keeps are blended differently.
// The rate is a 0-d tensor, so that it may move.
struct Lion {
  TensorList params, exp_avgs;
  Tensor lr;

  void step() const {
    std::vector<Tensor> grads;
    for (const Tensor& param : params) grads.push_back(param.grad());
    foreach_map_(
        [](auto param, auto mean, auto grad, auto rate) {
          const auto direction = sign(lerp(mean, grad, 0.1));
          return std::pair{param - rate * direction, lerp(mean, grad, 0.01)};
        },
        into(params, exp_avgs), TensorList(grads, "grads"), lr);
  }
};

static void write_your_own_optimizer(const Options&) {
  step("A small problem");
  // A linear layer of random weights is the teacher, and its pupils, one for
  // Adam and one for Lion, learn to imitate it. They begin alike and see the
  // same, :constant:`eight <asked = {rand({#, 16}>` examples at a time, with
  // noise in the answers.
  Generator gen(0);
  const Linear teacher(16, 4, gen), adams(16, 4, gen), lions = adams.clone();
  const auto learn = [&](const Linear& pupil, int n) {
    Generator examples(n);
    const TensorList asked = {rand({8, 16}, examples)};
    const TensorList noise = {rand({8, 4}, examples)};
    const auto answer = foreach_add(TensorList{teacher(asked[0])}, noise);
    for (Tensor param : pupil.parameters()) param.set_grad({});
    mse_loss(pupil(asked[0]), answer[0]).backward();
  };
  print("parameters of a pupil: ", lions.parameters().size());

  step("Adam and Lion");
  // ``compile`` takes any function, and what that does to lists is fused.
  // Nothing has to be said about Lion.
  Adam adam(adams.parameters(), {.lr = tensor(0.03)});
  const TensorList params(lions.parameters(), "params");
  const auto means = foreach_mul(params, 0.0);
  const Lion lion = {params, {means.tensors(), "means"}, tensor(0.01)};
  auto adam_step = compile([&] { adam.step(); });
  auto lion_step = compile([&] { lion.step(); });

  step("Beside Adam");
  // Both rates fall to zero in a straight line, as Lion's steps never become
  // small by themselves. At equal rates an element moves as far in every Lion
  // step as in a large one of Adam's, so the paper has Lion start at a third of
  // Adam's rate, or a tenth. The loss is that of :constant:`a thousand <asked =
  // rand({#, 16}>` examples to come. They are noisy too, and nobody can foresee
  // noise, so it cannot fall to zero, only to the variance of the noise, a
  // twelfth.
  const Tensor asked = rand({1000, 16}, gen);
  const TensorList answer = {teacher(asked)};
  foreach_add_(answer, TensorList{rand({1000, 4}, gen)});
  print_columns("step", "Adam loss", "Lion loss");
  const auto loss_of = [&](const Linear& pupil) {
    return Within{mse_loss(pupil(asked), answer[0]).item(), 0.05, 2};
  };
  for (int n = 0; n <= 300; ++n) {
    if (n % 20 == 0) print_row(n, loss_of(adams), loss_of(lions));
    learn(adams, n);
    learn(lions, n);
    adam.param_groups[0]["lr"].assign(0.03 * (1 - n / 300.0));
    Tensor(lion.lr).fill_(0.01 * (1 - n / 300.0));
    adam_step();
    lion_step();
  }

  step("One launch each");
  // .. recipe-plot:: Beside Adam
  //    :alt: The curves of both losses fall together at first, waver side by
  //          side, and come to rest at the same height.
  //
  //    The table above, drawn. Its last digits depend on the CPU, which
  //    multiplies matrices in an order of its own.
  //
  // Lion keeps up, with half of the state, and its step needed nothing more to
  // be one :term:`launch`: it reads :value:`three <loads: ...>` arrays and
  // writes :value:`two <stores: ...>`, where Adam reads :value:`four <loads:
  // ... @ compiling_optimizer>` and writes :value:`three <stores: ... @
  // compiling_optimizer>`. Each got one kernel, although its rate moved at
  // every step.
  assert_fused(lion_step);
  print_block(lion_step.summary());
  const Counters &a = adam_step.counters(), &l = lion_step.counters();
  print("Adam: ", a.launches,
        " launches, kernels: ", exact("adam_kernels", a.compilations));
  print("Lion: ", l.launches,
        " launches, kernels: ", exact("lion_kernels", l.compilations));
}

// %%
// Change it
// ---------
//
// .. exercise:: cautious
//
//    A later idea: do nothing to an element whose direction and gradient
//    disagree. One ``where`` will do. Does it help here?
//
// .. exercise:: weight_decay
//
//    Add Lion's weight decay, which pulls at the parameters themselves:
//    ``rate * (direction + 0.1 * param)``. What does it cost, and what does the
//    loss say?
//
// .. exercise:: plain_number
//
//    Make the rate a plain ``double``. How many kernels are there now?

int main(int argc, char** argv) {
  return run_recipe(argc, argv, write_your_own_optimizer);
}
