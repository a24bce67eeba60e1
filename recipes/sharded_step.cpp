#include "fusebook/distributed/sharded_optimizer.h"
#include "fusebook/fusebook.h"

using namespace fuse;

// %%
// A sharded step
// ==============
//
// Training in several processes shares out the work: each works out the
// gradients of some of the examples, and may keep the :term:`states <state>` of
// some of the weights alone. But a sum of floating-point numbers depends on its
// order, and so, with most libraries, what is learned depends on the number of
// processes. Here it does not. We train in one process and in several, compare
// every bit and count the bytes, and then try the usual way.

// %%
// A model with its :term:`optimizer`. A step has :constant:`eight
// <micro_batches = #;>` *micro-batches*. Each of them has a gradient, which is
// added to those before it.
constexpr int steps = 20, micro_batches = 8;

struct Training {
  void backward(int step, int m) {
    Generator batch(std::uint64_t(step * micro_batches + m));
    const Tensor x = rand({16, width}, batch);
    mse_loss(tanh(linear(x, weight)), x).backward();
  }
  std::int64_t width;
  Generator gen = Generator(0);
  Tensor weight = Linear(width, width, gen, false).weight();
  Adam adam{{weight}, {.lr = 0.01}};
};

static void compare(Ranks& all, const Options& options) {
  step("One process");
  // First the plain loop: it adds up gradients, makes a step, and knows of no
  // other process. The hash stands for every bit of the weights.
  Training alone{options["width"]};
  for (int s = 0; s < steps; ++s) {
    alone.adam.zero_grad();
    for (int m = 0; m < micro_batches; ++m) alone.backward(s, m);
    alone.adam.step();
  }
  print("one process: states ", alone.adam.memory().states, ", hash ",
        varying_text("alone", hash_of_bits({alone.weight})));

  step("The same bits");
  // MPI starts as many processes of this program as it is told, and numbers
  // them: its *ranks*. They form groups of ``n``, which all train the same, and
  // the first rank of all prints. A ``ShardedOptimizer`` cuts the weights into
  // shares, one for each rank of a group, which alone has states for them.
  //
  // Micro-batch ``m`` belongs to rank ``m % n``. ``add_gradients`` sends every
  // part of its gradient to the rank that owns it. The owner adds what arrives
  // in the order of the micro-batches: it begins with the first, and rounds
  // after each, as the plain loop does. ``step`` is one :term:`launch` on each
  // rank, over its share. Then each rank sends its new weights to all others.
  //
  // Below are the bytes of states that the first rank keeps, and those of
  // gradients and weights that it sends in a step.
  for (int n = 1; n <= all.size(); n *= 2) {
    Ranks ranks(all, n);
    Training run{options["width"]};
    ShardedOptimizer sharded(ranks, run.adam);
    for (int s = 0; s < steps; ++s) {
      for (int m = ranks.rank(); m < micro_batches; m += ranks.size()) {
        run.backward(s, m);
        sharded.add_gradients();
      }
      sharded.step();
    }
    const RankTraffic sent = ranks.traffic();
    print("ranks ", n, ": states ", run.adam.memory().states, ", sent ",
          sent.gradients / steps, " + ", sent.parameters / steps, ", hash ",
          varying_text("shared_" + number_text(n), hash_of_bits({run.weight})),
          ", same: ", bitwise_equal(run.weight, alone.weight));
  }

  step("What an allreduce makes of it");
  // Counted in bytes, the states on the first of :value:`four <ranks #: states
  // 524296>` ranks are :value:`524296 <ranks 4: states #>`, and those of one
  // process :value:`2097160 <one process: states #>`. The order has its price:
  // the gradient of every micro-batch is sent, all but its own rank's share.
  //
  // Most libraries send less. A rank first adds up what it has, one call, here
  // of MPI, adds up what all ranks have, and each makes a step. But who adds
  // what, and when, now depends on the number of ranks and on MPI. Sums differ
  // in their last bits, and so, in the end, do the weights:
  for (int n = 1; n <= all.size(); n *= 2) {
    const Ranks ranks(all, n);
    Training run{options["width"]};
    for (int s = 0; s < steps; ++s) {
      run.adam.zero_grad();
      for (int m = ranks.rank(); m < micro_batches; m += n) run.backward(s, m);
      Tensor sum = run.weight.grad().cpu();
      MPI_Allreduce(MPI_IN_PLACE, sum.data<float>(), int(sum.numel()),
                    MPI_FLOAT, MPI_SUM, ranks.communicator());
      run.weight.grad().copy_(sum);
      run.adam.step();
    }
    print("ranks ", n, ": hash ",
          varying_text("summed_" + number_text(n), hash_of_bits({run.weight})),
          ", same: ", bitwise_equal(run.weight, alone.weight));
  }
}

// %%
// Change it
// ---------
//
// .. exercise:: clip
//
//    Clip by the norm of all gradients: ``max_norm`` in the sharded step, and
//    ``clip_grad_norm_`` in the plain loop. A norm is a sum, too. Are the bits
//    still the same?
//
// .. exercise:: five
//
//    Take :constant:`five <micro_batches = #;>` micro-batches, which groups of
//    more than one rank cannot share evenly. What does the first rank send?
//
// .. exercise:: add_first
//
//    Call ``add_gradients`` once in a step, when a rank has added up what it
//    has. What is saved, and what is lost?

int main(int argc, char** argv) {
  return run_recipe_on(run_ranks, argc, argv, compare, stack_options(1, 512));
}
