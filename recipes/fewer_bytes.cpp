#include "fusebook/fusebook.h"

using namespace fuse;

// %%
// Fewer bytes
// ===========
//
// A compiled step runs as fast as memory delivers, so only one thing makes it
// faster: fewer bytes. Most of them are the :term:`states <state>` of the
// :term:`optimizer`. Here they become codes of 8 bits. We train a model with
// them and without, look at what they cost and what they lose, and draw how
// they come to lose so little.

// %%
// The model will be a matrix and a ``tanh``. The weights of the matrix are
// float32, or bfloat16 with masters as in :doc:`mixed_precision_training`, but
// split: the upper bits of a master are the weight, and only the lower ones are
// kept besides. Or nothing is: ``use_stochastic_rounding`` rounds up or down by
// random bits. ``use_8bit_states`` leaves the states of small parameters as
// they are; from :constant:`256 <coded, #)>` elements on they become codes.
struct Training {
  Training(const Tensor& w, bool coded = false, bool masters = true)
      : weight(w.clone()), optimizer({weight.requires_grad_()}, {.lr = 1e-3}) {
    optimizer.use_split_masters(masters && w.dtype() == bfloat16);
    optimizer.use_stochastic_rounding(!masters);
    optimizer.use_8bit_states(coded, 256);
  }
  Tensor weight;
  Adam optimizer;
};

static void fewer_bytes(const Options& options) {
  step("What is learned");
  // The same training with each kind of storage: all begin with equal weights,
  // see the same inputs, and learn to imitate another model of this kind. Each
  // row shows the losses before a step; ``codes`` is float32 with states in
  // 8 bits, ``both`` is bfloat16 with them, and ``least`` is that without
  // masters.
  Generator gen(0);
  const Tensor x = rand({64, 16}, gen);
  const Tensor target = tanh(linear(x, Linear(16, 64, gen).weight())).detach();
  const auto each = [&](int n) {
    const Tensor w = Linear(16, n, gen).weight().detach(), h = w.to(bfloat16);
    return std::array{Training(w), Training(h), Training(w, true),
                      Training(h, true), Training(h, true, false)};
  };
  auto fused = compile([](Training& t) { t.optimizer.step(); });
  auto small = each(64), large = each(int(options["width"]));
  print_columns("step", "f32 loss", "bf16 loss", "codes loss", "both loss",
                "least loss");
  for (int n = 0; n <= 500; ++n) {
    std::vector<Within> losses;
    for (Training& t : small) {
      t.optimizer.zero_grad();
      const auto loss = mse_loss(tanh(linear(x, t.weight.to(float32))), target);
      loss.backward();
      fused(t);
      losses.push_back({loss.item(), 1e-9, 1});
    }
    if (n % 25 == 0) print_row(n, losses);
  }

  step("What it costs");
  // .. recipe-plot:: What is learned
  //    :alt: The curves of all storages fall together and end side by side.
  //
  //    The table above, drawn.
  //
  // Fewer bytes do no harm: with codes, training ends where it ends without.
  // Now the same steps with large matrices. Each time stands beside that of the
  // limit of float32, a loop that moves :value:`28 <float32: # bytes>` bytes
  // per element and does nothing else. A code is a byte, and every
  // :constant:`256 <block_size = # @ kernels/prelude/blocks.h>` of them share a
  // scale. The kernel decodes a block when it reads it, and codes it again when
  // it has changed it. Still everything is one :term:`launch`. ``least`` has a
  // random number for every weight, too: what takes its time is arithmetic.
  const TrafficLimit limit({large[0].weight.numel()});
  std::vector<std::function<void()>> passes = {[&] { limit.run(); }};
  for (Training& t : large) t.weight.set_grad(t.weight.detach().clone());
  for (Training& t : large) passes.emplace_back([&] { fused(t); });
  const auto t = interleaved(passes);
  const char* const names[] = {"float32", "bfloat16", "codes", "both", "least"};
  for (std::size_t i = 0; i < 5; ++i) {
    const double moved = double(counters_of(passes[i + 1]).bytes_moved);
    print(names[i], ": ", quantity_text(moved / (16 * options["width"]), ""),
          " bytes, ", ratio(names[i], t[i + 1], t[0]), " of the limit");
  }

  step("What roots do");
  // How can a byte be enough? The numbers of a block differ by orders of
  // magnitude, so steps of one size would lose all that are small beside the
  // largest. A code is a root of what it stands for instead: steps are fine
  // where numbers are small. That is called companding. Here are the largest
  // errors, relative to the number, of numbers that are halved again and again
  // beside a one.
  print_columns("halved", "roots error", "even error");
  for (int k = 0; k <= 12; ++k) {
    double roots = 0, even = 0, v = std::ldexp(1, -k);
    for (int i = 0; i < 512; ++i, v -= std::ldexp(1, -k - 10)) {
      const Tensor coded = tensor({1, v}).to(block8).to(float32).cpu();
      roots = std::max(roots, std::abs(coded.data<float>()[1] - v) / v);
      even = std::max(even, std::abs(std::round(v * 127) / 127 - v) / v);
    }
    print_row(k, roots, even);
  }
}

// %%
// .. recipe-plot:: What roots do
//    :alt: The error of even steps doubles with every halving until nothing is
//          left of the number; that of roots grows far more slowly.
//
//    The table above, drawn. Where a state is never negative, as an average of
//    squares is, there is no sign to keep, and the code is a fourth root.

// %%
// Change it
// ---------
//
// .. exercise:: small_blocks
//
//    Let every :constant:`32 <coded, 256, #)>` codes share a scale, by the last
//    argument of ``use_8bit_states``. What do scales cost now?
//
// .. exercise:: no_companding
//
//    What would even steps do to training? Leave small states in float32, and
//    after each step round them to even steps of the largest of their block.
//
// .. exercise:: lion
//
//    Write Lion in place of ``Adam``: its steps are signs of an average of
//    gradients. Does it learn as well with codes, of which it says no word?

int main(int argc, char** argv) {
  return run_recipe(argc, argv, fewer_bytes, width_option(1 << 19));
}
