#include "fusebook/fusebook.h"

using namespace fuse;

// %%
// The whole tail of a step
// ========================
//
// A training loop does more with gradients than hand them to an optimizer. It
// divides them by the scale of the loss, looks for infinities, and clips them
// by their :term:`norm`; afterwards it averages the weights. Each of these is a
// pass over memory of its own, and some make the host wait for a number before
// it can go on. Here we put them into the compiled step, one after the other,
// and watch what each adds: :term:`launches <launch>`, bytes, time. One of them
// is free, and the others cost what they must.

// %%
// A model with its optimizer, and all that comes around a step. ``tail(0)`` is
// the bare step, and each further number adds a part. Whether the step is made
// is a number, too: if ``skip`` is not zero, the :term:`kernel` leaves all
// as it was, and the host never asks. The scale is one, so that gradients stay
// as they are while we measure; it is a 0-d tensor, which may move.
struct Training {
  void tail(int parts) {
    const TensorList grads = adam.gradient_lists()[0];
    StepOptions given;
    if (parts >= 1) foreach_div_(grads, scale);
    if (parts >= 2) given.skip = 1.0 - all_finite(grads);
    if (parts >= 3) clip_grad_norm_(adam.parameters(), 1.0);
    adam.step(given);
    if (parts >= 4) averaged.update_parameters(model, {.skip = given.skip});
  }
  Sequential model;
  Tensor scale = tensor(1.0);
  Adam adam{model.parameters(), {.lr = 0.01}};
  AveragedModel<Sequential> averaged{model, get_ema_multi_avg_fn(0.999)};
};

static void the_whole_tail(const Options& options) {
  step("Model setup");
  // :value:`Eight <# parameters of shape>` linear layers, and their gradients.
  Generator gen(0);
  Training run{linear_stack(options["layers"], options["width"], gen)};
  run.model(full({options["width"]}, 1)).sum().backward();
  const auto params = run.model.parameters();
  print(params.size(), " parameters of shape ", params[0].shape());

  step("One part after the other");  // by device
  // Each row adds a part: compiled on the left, and on the right pass by pass,
  // where every operation is a launch. Bytes are those of an element. Times are
  // medians of calls made in turns, divided by that of a loop that moves as
  // many bytes as the compiled row and next to nothing else: the limit.
  const std::vector sizes(params.size(), params[0].numel());
  const auto numel = std::int64_t(sizes.size()) * sizes[0];
  const int reads[] = {4, 4, 5, 5, 6}, writes[] = {3, 4, 4, 4, 5};
  const std::string names[] = {"step", "unscale", "check", "clip", "average"};
  print("         launches phases bytes / limit | launches bytes / limit");
  for (int n = 0; n < 5; ++n) {
    auto fn = compile([&] { run.tail(n); }, {.fullgraph = true});
    const auto eager = [&] { run.tail(n); };
    for (int i = 0; i < 2; ++i) fn();
    const Counters c = counters_of(fn), e = counters_of(eager);
    const TrafficLimit limit(sizes, reads[n], writes[n]);
    const auto t = interleaved({[&] { limit.run(); }, fn, eager}, {0.2, 5});
    print(left(names[n], 9), right(c.launches, 8),
          right(c.reduction_phases + 1, 7), right(c.bytes_moved / numel, 6),
          right(ratio(names[n] + "_fused", t[1], t[0], 0.97), 8), " |",
          right(e.launches, 9), right(e.bytes_moved / numel, 6),
          right(ratio(names[n] + "_passes", t[2], t[0]), 8));
  }

  step("What is free");
  // All of it stays :value:`one <average # 2>` launch (on a GPU without
  // cooperative launches, one for each phase). The bare step moves
  // :value:`28 <step 1 1 #>` bytes per element.
  //
  // - *Unscale* stores gradients that the step has in registers anyway. That
  //   makes :value:`32 <unscale 1 1 #>` bytes.
  // - *Check* wants to know about all gradients before the first weight may
  //   change. So the launch gets a :term:`phase` before the step, which reads
  //   them all and ends with one number: :value:`36 <check 1 2 #>` bytes. The
  //   step has to read them again, as they are too many to be kept in registers
  //   or caches until that number is known.
  // - *Clip* has to wait for a norm, a sum over all gradients, in the same way.
  //   But the phase is there already and has the gradients at hand, and the
  //   factor is applied while the step reads them. It is free:
  //   :value:`36 <clip 1 2 #>` bytes.
  // - *Average* reads and writes an array of its own, which makes
  //   :value:`44 <average 1 2 #>` bytes. The new weights are in registers.
  //
  // So the kernel of the last row reads gradients twice and all else once, and
  // it stores nothing before the step is known to be made:
  auto whole = compile([&] { run.tail(4); });
  whole();
  print_block(whole.summary());

  step("A step that is not made");
  // With an infinite gradient nothing changes: no weight, no average, no count
  // of steps. The host learns of it only because we ask. What makes the scale
  // smaller then, and larger later, is ``GradScaler``, which is used as in
  // torch; its numbers, too, stay where the gradients are.
  const Tensor before = params[0].clone();
  const double steps = run.adam.state(params[0], "step").item();
  Tensor(params[0].grad()).fill_(INFINITY);
  whole();
  print("same weights: ", bitwise_equal(before, params[0]));
  print("steps counted: ", run.adam.state(params[0], "step").item() - steps);
}

// %%
// Change it
// ---------
//
// .. exercise:: in_registers
//
//    Leave the gradients as they are: let the scale and the factor of clipping
//    be one number, and give it to the step as ``.grad_scale``. How many bytes
//    has the last row now?
//
// .. exercise:: by_value
//
//    Clip each element by itself, with ``clip_grad_value_``, and leave the
//    check out. How many phases are left?
//
// .. exercise:: lars
//
//    Use ``LARS`` in the place of ``Adam``: its step depends on norms of its
//    own. How many phases does the last row have, and why?

int main(int argc, char** argv) {
  return run_recipe(argc, argv, the_whole_tail, stack_options(8, 1024));
}
