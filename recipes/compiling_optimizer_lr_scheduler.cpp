#include "fusebook/fusebook.h"

using namespace fuse;

// %%
// Running the compiled optimizer with an LR scheduler
// ===================================================
//
// A learning rate is seldom left alone: a scheduler moves it after every step.
// A compiled step, on the other hand, would like its numbers to stand still,
// because a number that never changes can become part of the code. Here the two
// meet. We count how often the step is compiled when the rate is a tensor, when
// it is a plain number, and when the scheduler turns up after the fact.
//
// This retells `Running the compiled optimizer with an LR scheduler
// <https://pytorch.org/tutorials/recipes/compiling_optimizer_lr_scheduler.html>`_
// by Michael Lazos. Where the original is wrong we say so, at the step it
// belongs to. What stands behind it, his note `Supporting LRScheduler with
// compiled optimizer
// <https://dev-discuss.pytorch.org/t/compiled-optimizer-w-lr-scheduler-now-supported/2107>`_,
// is retold in :doc:`/background/scalars_and_guards`.

static void step_and_schedule(const Options& options) {
  step("Model setup");
  // Linear layers and one backward pass, so that every parameter has a
  // gradient. All optimizers below share them.
  Generator gen(0);
  const auto model = linear_stack(options["layers"], options["width"], gen);
  model(rand({options["width"]}, gen)).sum().backward();
  const auto params = model.parameters();
  print(params.size(), " parameters of shape ", params[0].shape());

  step("A tensor for a rate");
  // The rate is a 0-d tensor, and ``compile`` goes around both: the optimizer's
  // step and the scheduler's. All that Adam does to all parameters is fused
  // into one :term:`launch` per call. The scheduler writes into the tensor,
  // each launch hands its value to the :term:`kernel`, and nothing has to be
  // compiled twice. LinearLR starts at a third of the rate. Printed is the rate
  // *after* each call, so the first one, a third of :constant:`0.01`, is not in
  // the list.
  Adam opt(params, {.lr = tensor(0.01)});
  LinearLR sched(opt, {.total_iters = 5});
  auto fn = compile([&] {
    opt.step();
    sched.step();
  });
  for (int i = 0; i < 5; ++i) {
    fn();
    print(opt.param_groups[0]["lr"]);
  }
  const auto print_counts = [](const std::string& of, const Counters& count) {
    print("compilations ", exact(of + "compilations", count.compilations),
          ", recompiles ", exact(of + "recompiles", count.recompiles),
          ", launches ", exact(of + "launches", count.launches));
  };
  print_counts("tensor_", fn.counters());

  step("What happens with a non-tensor LR?");
  // A plain number is built into the kernel, and a :term:`guard` remembers its
  // value. Under the policy ``specialize`` each new value gets a kernel of its
  // own, up to a limit of :constant:`eight <specialization_limit = # @
  // common/programs/policy.h>`; values beyond it run :term:`eager`. The log
  // tells why: it lists every value there is a kernel for, the newest first (a
  // lambda has no name, so it is called ``step``). :constant:`Five <i < #; ++i)
  // one_each>` calls, :value:`four <recompiles #>` reports. The first call and
  // the second reproduce the example of the note.
  show_logs(Log::recompiles);
  Adam plain(params, {.lr = 0.01});
  LinearLR linear(plain, {.total_iters = 5});
  auto one_each = compile(
      [&] {
        plain.step();
        linear.step();
      },
      {.policy = Policy::specialize});
  for (int i = 0; i < 5; ++i) one_each();
  print_counts("float_", one_each.counters());

  step("The scheduler in the original");
  // An early version of the original prints those reports under a program with
  // ``torch.optim.ConstantLR(opt, factor=0.001, iters=4)``. (`Later ones
  // <https://github.com/pytorch/tutorials/blob/258955cec89956025972327f8577e2c0e6d1b4da/recipes_source/compiling_optimizer_lr_scheduler.py>`_
  // have LinearLR there, too.) There is no such class: it is
  // ``lr_scheduler.ConstantLR``, and it takes ``total_iters``. Nor can the log
  // be its log. ConstantLR holds the rate at one value for :constant:`four
  // <factor = 0.001, .total_iters = #>` calls and then puts it back, so in
  // :constant:`five <i < #; ++i) once>` calls it moves once:
  Adam held(params, {.lr = 0.01});
  ConstantLR constant(held, {.factor = 0.001, .total_iters = 4});
  auto once = compile(
      [&] {
        held.step();
        constant.step();
      },
      {.policy = Policy::specialize});
  for (int i = 0; i < 5; ++i) once();
  print_counts("constant_", once.counters());

  step("One recompile, whenever the scheduler comes");
  // Making the rate a tensor is optional. Under ``promote``, the policy if none
  // is given, one :term:`recompile` makes inputs of all hyper-parameters when
  // the first of them moves: for good, as if they had been tensors all along.
  // So plain numbers cost one recompile together. This holds too for a
  // scheduler that is made after the first compiled call, which the note leaves
  // open, and for one that moves more than the rate: OneCycleLR also cycles the
  // first beta.
  Adam late(params, {.lr = 0.01});
  std::unique_ptr<LRScheduler> schedule;
  auto train = compile(
      [&] {
        late.step();
        if (schedule) schedule->step();
      },
      {.policy = policy_named(options.choice("policy"))});
  train();
  schedule = make_scheduler(options.choice("scheduler"), late, 20);
  for (int i = 0; i < 20; ++i) train();
  print_counts("", train.counters());
}

// %%
// Change it
// ---------
//
// With fewer layers: ``./fusebook run compiling_optimizer_lr_scheduler --layers
// 4``. The last step also takes other schedules and policies, for example
// ``--scheduler StepLR --policy specialize``; ``--help`` lists them. Then
// change the program.
//
// .. exercise:: past_the_limit
//
//    ``specialize`` makes at most :constant:`eight <specialization_limit = # @
//    common/programs/policy.h>` kernels for the same operations. Let
//    ``linear`` take :constant:`twelve <linear(plain, {.total_iters = #>` steps
//    and call ``one_each`` as often. What do the launches say about the calls
//    that got no kernel?
//
// .. exercise:: two_tensors
//
//    The policy ``fail_on_recompile`` makes a recompile an error. Give it to
//    ``train`` and make ``late`` pass: which numbers have to be tensors?
//
// .. exercise:: weight_decay
//
//    After half of its :constant:`twenty <late, #); for>` calls, give ``late``
//    a ``["weight_decay"]`` of :constant:`0.1`. Why can no policy spare this
//    recompile?

int main(int argc, char** argv) {
  return run_recipe(argc, argv, step_and_schedule, schedule_options(10, 1024));
}
