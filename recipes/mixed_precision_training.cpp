#include "fusebook/fusebook.h"

using namespace fuse;

// %%
// Mixed-precision training
// ========================
//
// Weights in 16 bits take less memory than those in float32, and less time to
// be read. But an update is often smaller than the distance to the next number
// of so few bits, and is rounded away: training comes to a halt long before it
// is done. So the :term:`optimizer` keeps each weight in float32 besides, its
// master. A step moves the masters, and rounds them into the weights while they
// are in registers. In float16 small gradients vanish, too, so they are
// computed from a loss that is made larger, by a *scale*. We train one model in
// several ways and compare.

// %%
// The model is a matrix, a ``tanh`` and another matrix. Products are computed
// in float32, as GPUs do with factors of 16 bits, and gradients arrive in the
// type of the weights. With it come Adam, with masters or without, and a
// ``GradScaler``, which does nothing unless it is enabled, for float16.
struct Training {
  Training(DType dtype, bool masters, Generator gen = Generator(1))
      : weights{Linear(8, 64, gen).weight().detach().to(dtype),
                Linear(64, 1, gen).weight().detach().to(dtype)},
        adam(weights, {.lr = 2e-4}),
        scaler({.enabled = dtype == DType::float16}) {
    for (const Tensor& each : weights) each.requires_grad_();
    adam.use_master_weights(masters);
  }
  Tensor operator()(const Tensor& input) const {
    const auto wide = [](const Tensor& w) { return w.to(DType::float32); };
    return linear(tanh(linear(input, wide(weights[0]))), wide(weights[1]));
  }
  std::vector<Tensor> weights;
  Adam adam;
  GradScaler scaler;
};

static void mixed_precision_training(const Options&) {
  step("With masters and without");
  // All trainings begin alike, and learn to imitate another model of this kind.
  // What follows the gradients is ``tail``: it makes the step, unless one of
  // them is infinite, and adapts the scale. It is compiled for all but float16,
  // for which it runs as it stands; to compile that, too, is an exercise. Each
  // row shows the losses before a step; ``bare`` is bfloat16 without masters.
  Generator gen(0);
  const Tensor input = rand({64, 8}, gen);
  const Training teacher(DType::float32, false, Generator(2));
  const Tensor target = teacher(input).detach();
  const auto tail = [](Training& t) {
    t.scaler.step(t.adam);
    t.scaler.update();
  };
  auto fused = compile(tail);
  const auto train = [&](Training& t, auto& update) {
    t.adam.zero_grad();
    const Tensor loss = mse_loss(t(input), target);
    t.scaler.scale(loss).backward();
    update(t);
    return Within{loss.item(), 1e-6, 0.1};
  };
  Training wide(DType::float32, false), brain(DType::bfloat16, true);
  Training bare(DType::bfloat16, false), half(DType::float16, true);
  print_columns("step", "float32 loss", "bfloat16 loss", "bare loss",
                "float16 loss");
  for (int n = 0; n <= 500; ++n) {
    const Within a = train(wide, fused), b = train(brain, fused);
    const Within c = train(bare, fused), d = train(half, tail);
    if (n % 50 == 0) print_row(n, a, b, c, d);
  }

  step("What the masters did");
  // .. recipe-plot:: With masters and without
  //    :alt: The curves of float32 and of both types with masters fall together
  //          until the end. That of bfloat16 without masters bends away
  //          early, and stays far above them.
  //
  //    The table above, drawn.
  //
  // The rate is small so that this shows: Adam moves most weights by less than
  // the distance to the next number in bfloat16, and alone, these updates are
  // rounded away. In a master they add up, until the rounded weight moves as
  // well. With masters both types train like float32: the loss of bfloat16
  // ends at :value:`bfloat16_loss_500`, and without them at
  // :value:`bare_loss_500`.
  //
  // With masters a step remains one launch and moves no byte more:
  // :value:`28 <bfloat16: #>` per element in bfloat16, as in float32. It also
  // writes the rounded weights, but reads smaller gradients. The tail of
  // float16, with its check and its scale, moves :value:`94 <float16: #>` pass
  // by pass.
  const char* const names[] = {"float32", "bfloat16", "bare", "float16"};
  Training* const all[] = {&wide, &brain, &bare, &half};
  for (int i = 0; i < 4; ++i) {
    const Counters c =
        counters_of([&] { i < 3 ? fused(*all[i]) : tail(*all[i]); });
    print(names[i], ": ", c.bytes_moved / (9 * 64), " bytes per element");
  }

  step("An overflow");
  // This small model would learn without a scale; in deep ones gradients become
  // so small that they need it. Numbers in float16 do not become large, so a
  // scale can be too large for them. Here it is absurdly large: gradients are
  // infinite, and the step is skipped. The weights stay, and the scale is
  // halved.
  //
  // The ``GradScaler`` of torch refuses gradients in float16, because without
  // their scale the small ones would vanish. Ours takes them. Where there are
  // masters, a step divides by the scale what it has converted to float32, and
  // leaves the gradients themselves as they are.
  half.scaler.update(0x1p40);
  const Tensor before = half.weights[0].clone();
  train(half, tail);
  print("scale:        ", half.scaler.get_scale() / 0x1p40, " of what it was");
  print("same weights: ", bitwise_equal(before, half.weights[0]));
}

// %%
// Change it
// ---------
//
// .. exercise:: larger_rate
//
//    Give Adam a rate of :constant:`0.01`. Does the training without masters
//    still fall so far behind?
//
// .. exercise:: compiled
//
//    Compile the tail of float16 as well: use ``fused`` wherever ``tail`` is
//    called. How many bytes does it move now, and why not as few as that of
//    bfloat16?
//
// .. exercise:: rmsprop
//
//    Replace Adam by ``RMSprop``, which keeps one array less. How many bytes do
//    masters cost now?

int main(int argc, char** argv) {
  return run_recipe(argc, argv, mixed_precision_training);
}
