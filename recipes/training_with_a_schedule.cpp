#include "fusebook/fusebook.h"

using namespace fuse;

// %%
// Training with a schedule
// ========================
//
// In a call without headphones, the microphone hears the loudspeaker too, with
// all the echoes of the room. To take them away again, a program has to learn
// the room while people speak, from a few noisy sounds at a time. With a large
// learning rate it learns fast, and then keeps chasing noise; with a
// small one it is calm, and slow. A schedule can have both, and with a tensor
// for a rate it costs a compiled step neither a second launch nor a second
// :term:`kernel`. At the end training stops, and goes on from a file as if it
// had never stopped.

// %%
// What the microphone hears is a weighted sum of the last sounds, so a linear
// layer can be the room. It remembers :constant:`sixteen <Linear room(#, 1>`
// sounds, and we add noise.
static auto listen(const Linear& room, std::int64_t count, Generator gen) {
  const Tensor played = rand({count, 16}, gen);
  const TensorList noise = {rand({count, 1}, gen)};
  return std::pair(played, foreach_add(TensorList{room(played)}, noise)[0]);
}

// %%
// A second linear layer learns to imitate the first. Adam trains it, and the
// schedule multiplies Adam's rate by ``gamma`` after every step, so with a
// gamma of one the rate stays. The rate is a 0-d tensor: the schedule writes
// into it, and a compiled step reads it anew at every call.
struct Filter {
  Filter(double rate, double gamma, Generator gen = Generator(1))
      : model(16, 1, gen),
        opt(model.parameters(), {.lr = tensor(rate)}),
        sched(opt, {.gamma = gamma}) {}
  Linear model;
  Adam opt;
  ExponentialLR sched;
};

static void training_with_a_schedule(const Options&) {
  step("With and without");
  // A pair of filters begins alike and hears the same: :constant:`four
  // <listen(room, #, Generator(f>` moments at a time, and which ones depends on
  // the number of the step alone. The compiled function takes the filter as an
  // argument and serves both. The loss is the mean of squared errors over
  // :constant:`a thousand <listen(room, #, Generator(1000))>` moments that
  // neither was trained on. They are noisy as well, and nobody can foresee
  // noise, so the loss cannot fall to zero, only to the variance of the noise:
  // a twelfth, as it is spread evenly from zero to one.
  Generator gen(0);
  const Linear room(16, 1, gen);
  auto update = compile([](Filter& f) {
    f.opt.step();
    f.sched.step();
  });
  const auto train = [&](Filter& f) {
    const auto [played, heard] = listen(room, 4, Generator(f.opt.steps()));
    f.opt.zero_grad();
    mse_loss(f.model(played), heard).backward();
    update(f);
  };
  const auto [played, heard] = listen(room, 1000, Generator(1000));
  Filter flat(0.2, 1), faded(0.2, 0.985);
  print_columns("step", "flat rate", "faded rate", "flat loss", "faded loss");
  for (int n = 0; n <= 300; ++n) {
    if (n % 20 == 0) {
      print_row(n, flat.sched.get_last_lr()[0], faded.sched.get_last_lr()[0],
                Within{mse_loss(flat.model(played), heard).item(), 0.05, 2},
                Within{mse_loss(faded.model(played), heard).item(), 0.05, 2});
    }
    train(flat);
    train(faded);
  }

  step("What the schedule did");
  // .. recipe-plot:: With and without
  //    :alt: The curves of both losses fall alike for :value:`eighty
  //          <# 0.2000 0.05969>` steps. The one of the flat rate then jumps up
  //          and down until the end. The other one comes to rest, while its
  //          rate falls from :value:`0.2 <0 # 0.2000>` to :value:`0.002
  //          <300 0.2000 #>`.
  //
  //    The table above, drawn: the rates, and the losses that they led to. The
  //    last digits of a loss depend on the CPU, which multiplies matrices in an
  //    order of its own.
  //
  // In the beginning both learn fast. Later, with the flat rate, every step
  // follows the noise of its few moments as far as it follows the room.
  // Smaller steps average over more moments: the curve comes to rest. All this
  // was one kernel, compiled once. How large a rate is, and whether it moves,
  // is just data.
  const Counters& counters = update.counters();
  print("compilations: ", exact("compilations", counters.compilations));
  print("recompiles:   ", exact("recompiles", counters.recompiles));

  step("Stop, and go on");
  // A checkpoint holds the parameters, all that Adam keeps for them, its
  // numbers, and where the schedule is. The file is in the safetensors format,
  // so Python reads it too, and it is written completely or not at all. A new
  // filter takes over, here in the same program: everything goes into the
  // tensors that are there, to the last bit. Both train on, and stay equal.
  // (The last row of the table was printed before the last step.)
  const ScratchDirectory folder = make_temporary_directory();
  const std::string file = folder.path() + "/echo.safetensors";
  save_checkpoint(file, faded.opt, {&faded.sched});
  Filter later(0.2, 0.985);
  load_checkpoint(file, later.opt, {&later.sched});
  print("goes on after step ", later.opt.steps());
  for (int n = 0; n < 100; ++n) {
    train(faded);
    train(later);
  }
  const bool same = bitwise_equal(faded.model.weight(), later.model.weight());
  print("same bits:         ", exact("same_bits", same));
  print("recompiles:        ", counters.recompiles);
}

// %%
// Change it
// ---------
//
// The answers are what the program printed then.
//
// .. exercise:: small_rate
//
//    Is the schedule worth it, or would a small flat rate do? Give ``flat``
//    a rate of :constant:`0.01`.
//
// .. exercise:: warm_up
//
//    Many schedules begin with a warm-up. Start with a tenth of the rate and
//    reach all of it in :constant:`twenty <.total_iters = #>` steps: a
//    ``LinearLR``, and then the ``ExponentialLR``, in a ``SequentialLR``. Does
//    it help here?
//
// .. exercise:: schedule_free
//
//    Is a schedule needed at all? Schedule-free SGD (`Defazio and others, 2024
//    <https://arxiv.org/abs/2405.15682>`_) keeps its rate. It takes gradients
//    between the place that plain SGD has come to and the mean of all places
//    where it has been, and that mean is the model. Give both filters this
//    optimizer, with the way from the parameters to SGD's place as its state,
//    and print the losses of the means.

int main(int argc, char** argv) {
  return run_recipe(argc, argv, training_with_a_schedule);
}
