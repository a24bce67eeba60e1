#include "fusebook/fusebook.h"

using namespace fuse;

// %%
// Compiling the optimizer
// =======================
//
// Every training step ends with the :term:`optimizer`, and that touches
// everything: each parameter, its gradient, and what it remembers about both.
// Its arithmetic is trivial; what takes the time is memory. As a list of small
// operations, a step carries the same arrays from memory to the processor and
// back again and again. Here ``compile`` turns the step of :term:`Adam` into
// one kernel. Then we take that apart: where is the gain from, and is more
// left?
//
// This retells `Compiling the optimizer with torch.compile
// <https://pytorch.org/tutorials/recipes/compiling_optimizer.html>`_ by Michael
// Lazos. Where the original asserts that compiled code was faster, we assert
// what does not vary between runs: the number of launches, and results that are
// equal to the last bit. Times are only printed; those that are compared are
// medians of calls made in turns, which other load on the machine slows alike.

static void compiling_optimizer(const Options& options) {
  step("Model setup");
  // :value:`Ten <# parameters of shape>` linear layers without bias. The choice
  // of model hardly matters: all that an optimizer sees is a list of tensors.
  Generator gen(0);
  const auto model = linear_stack(options["layers"], options["width"], gen);
  const auto params = model.parameters();
  print(params.size(), " parameters of shape ", params[0].shape());

  step("The optimizer, twice");
  // An optimizer for the model, and an equal one for a clone. The first stays
  // :term:`eager`: each operation runs at once, for all tensors. The step of
  // the other is wrapped in ``compile``. Models, tensors and compiled functions
  // are handles: copies share the data.
  const auto twin = model.clone();
  Adam eager(params, {.lr = 0.01});
  Adam compiled(twin.parameters(), {.lr = 0.01});
  auto fn = compile([&] { compiled.step(); });

  step("Warm-up");
  // Both go through a training loop, with new gradients in every step. Every
  // call of the compiled step runs the lambda and records what it does. The
  // first call also generates a :term:`kernel` for that and waits until the
  // host's compiler has built it. Later calls compare what they record, and
  // check :term:`guards <guard>` such as a learning rate that still is what it
  // was. If all hold, the kernel is launched again, wherever the gradients are
  // now; if not, the step is compiled again. When this program runs again, it
  // finds the kernel in a cache on disk (its cost: :ref:`first-call`).
  std::vector<double> call_ms;
  for (int i = 0; i < 5; ++i) {
    for (const auto& net : {model, twin}) {
      net.zero_grad();
      net(full({options["width"]}, i + 1)).sum().backward();
    }
    eager.step();
    const double start = device_seconds();
    fn();
    call_ms.push_back((device_seconds() - start) * 1000);
  }
  const Counters& counters = fn.counters();
  print("launches in 5 calls: ", counters.launches);
  print("compilations:        ", exact("compilations", counters.compilations));
  print("recompiles:          ", exact("recompiles", counters.recompiles));
  print("the first call:      ", measured("first_ms", call_ms[0], "ms"));
  print("the fifth call:      ", measured("fifth_ms", call_ms[4], "ms"));

  step("The ladder");
  // Each call was one :term:`launch`. In one launch, :term:`horizontal fusion`
  // runs one operation on all tensors; :term:`vertical fusion` runs all
  // operations on one tensor, and what comes in between stays in registers. The
  // rungs of our ladder go from no fusion (``.foreach = false``) to both;
  // ``split`` has an optimizer per tensor, and ``fused`` takes it as an
  // argument, so that one kernel serves all. Each grid is traced from a real
  // step; a cell holds the number of the launch that did it.
  Adam single(model.clone().parameters(), {.foreach = false});
  std::vector<Adam> split;
  const auto parts = model.clone().parameters();
  for (const Tensor& part : parts) {
    split.emplace_back(std::vector{part}, AdamOptions{.lr = 0.01});
  }
  auto fused = compile([](Adam& adam) { adam.step(); });
  const auto costs = print_ladder(
      {{"op_by_op", single.parameters(), [&] { single.step(); }},
       {"horizontal", params, [&] { eager.step(); }},
       {"vertical", parts, [&] { std::ranges::for_each(split, fused); }},
       {"both", twin.parameters(), [&] { fused(compiled); }}});

  step("What was fused");
  // .. recipe-ladder:: The ladder
  //
  //    The ladder, drawn from the output above. Tensors go across, operations
  //    down, and each frame is one launch.
  //
  // Both kinds save launches; only vertical fusion saves traffic too, and for
  // large tensors traffic is time. Horizontal fusion alone took
  // :value:`horizontal_us / op_by_op_us` the time of no fusion, although it
  // moves the same bytes: between one operation on a tensor and the next it
  // goes over all other tensors, and what the first left in the cache is gone
  // when the next one needs it. ``vertical`` and ``both`` also move equal
  // bytes, beside which a few launches hardly count. They ran one kernel, which
  // knows the operations, never how many tensors there are or what shapes they
  // have. :term:`Bias corrections <bias correction>` depend on a step count
  // alone, so they are worked out once per tensor (eager, on the host). The
  // bytes per element are :value:`four <loads: ...>` loads and :value:`three
  // <stores: ...>` stores of a 32-bit number each.
  print("compilations:     ", fused.counters().compilations);
  print_block(fused.summary());

  step("Eager against compiled");
  // The optimizers from the beginning were ``horizontal`` and ``both``, so
  // their times are known. Now the one that made fewer steps catches up, and
  // both must have arrived at the same numbers.
  print("eager runtime:    ", measured("eager_us", costs[1].us, "us"), ", ",
        exact("eager_launches", costs[1].launches), " launches");
  print("compiled runtime: ", measured("compiled_us", costs[3].us, "us"), ", ",
        exact("compiled_launches", costs[3].launches), " launch");
  print("speedup:          ", ratio("speedup", "eager_us", "compiled_us"));
  while (eager.steps() < compiled.steps()) eager.step();
  while (compiled.steps() < eager.steps()) fn();
  const bool same = bitwise_equal(params, twin.parameters());
  print("same bits:        ", exact("bitwise_equal", same));

  step("The distance to the limit");
  // Adam must read :value:`four <loads: ...>` arrays and write :value:`three
  // <stores: ...>`. The limit is a loop that does just that and next to no
  // arithmetic, over arrays of its own, in the fastest of several ways. It
  // takes turns with the compiled step and with Adam written by hand as a loop
  // per tensor. Near one, no time is left to gain; just below it, the limit's
  // arrays happen to lie less well.
  AdamByHand hand(model.clone().parameters());
  const TrafficLimit limit(std::vector(params.size(), params[0].numel()));
  const auto t = interleaved(
      {[&] { limit.run(); }, [&] { fused(compiled); }, [&] { hand.step(); }});
  print("compiled / limit: ", ratio("to_limit", t[1], t[0], 0.97));
  print("by hand / limit:  ", ratio("by_hand", t[2], t[0], 0.97));
}

// %%
// Change it
// ---------
//
// With fewer layers: ``./fusebook run compiling_optimizer --layers 4``. Then
// change the program; the answers are what it printed then.
//
// .. exercise:: amsgrad
//
//    Give all optimizers ``.amsgrad = true`` and leave out the one by hand,
//    which has no such option. How many bytes does an element cost now, how
//    many launches does a step make, and what is its limit?
//
// .. exercise:: moving_lr
//
//    Let ``["lr"]`` in ``param_groups[0]`` of both optimizers be
//    :constant:`0.16` at the first call of the warm-up, and halve it at each
//    later one. Numbers are baked into a kernel: how often is it compiled?
//
// .. exercise:: small_tensors
//
//    Make it :constant:`a thousand <stack_options(#, 8)>` layers of width
//    :constant:`8 <stack_options(1000, #)>`. Which direction of fusion matters
//    more now?

int main(int argc, char** argv) {
  return run_recipe(argc, argv, compiling_optimizer, stack_options(10, 1024));
}
