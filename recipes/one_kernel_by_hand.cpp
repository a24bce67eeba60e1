#include "fusebook/fusebook.h"

using namespace fuse;

// %%
// One kernel by hand
// ==================
//
// The other recipes let ``compile`` write their kernels. To judge what it
// writes, it helps to have written one by hand. Here is Adam's step in CUDA
// (without the structs that name its inputs); then the generated one, launched
// on the same numbers; then the two side by side.
//
// A GPU runs a kernel with a great many threads at a time. They come in blocks
// of, here, :constant:`256 <__launch_bounds__(#) @
// common/bench/adam_by_hand.cu>`, and each finds out from its indices what its
// share of the work is. Nothing else tells threads apart.
//
// .. literalinclude:: /../common/bench/adam_by_hand.cu
//    :language: cuda
//    :start-after: // [kernel]
//    :end-before: // [kernel]
//
// Blocks form a grid: ``blockIdx.y`` says which tensor, and all blocks of one
// tensor share its elements. A tensor can have more elements than there are
// threads, so each thread walks on in steps of the whole grid, a *grid stride*.
// It takes :constant:`four <packs = t.numel / # @
// common/bench/adam_by_hand.cu>` neighbours at a time: memory moves all of them
// as cheaply as one, and fewer, wider accesses keep more bytes on their way.
//
// .. literalinclude:: /../common/bench/adam_by_hand.cu
//    :language: cuda
//    :start-after: // [packs]
//    :end-before: // [packs]
//    :dedent: 2
//
// What is less than a pack is left over at the end. It is the *tail*:
//
// .. literalinclude:: /../common/bench/adam_by_hand.cu
//    :language: cuda
//    :start-after: // [tail]
//    :end-before: // [tail]
//
// The per-element arithmetic is the simplest part. Operations and order are
// those of ``Adam`` (but for a branch of :term:`lerp` that these betas never
// take), and the compiler is told not to contract a product and a sum into one
// rounding, so the bits will be the same. ``step_size`` is negative:
//
// .. literalinclude:: /../common/bench/adam_by_hand.cu
//    :language: cuda
//    :start-after: // [update]
//    :end-before: // [update]

static void one_kernel_by_hand(const Options& options) {
  step("Where it runs");
  // On a GPU if there is one. If not, on a simulated GPU: the very text of the
  // kernels is compiled for the CPU, which then runs it thread by thread. That
  // is slow, and good for learning: the results are right to the last bit.
  const Device gpu = gpu_or_simulator();
  set_default_device(gpu);
  const bool simulated = gpu.kind == Device::Kind::cuda_sim;
  print("kernels run on: ", varying_text("gpu", device_model(gpu)));

  step("A model, twice");
  // The width is odd, so that every tensor has a tail.
  Generator gen(0);
  const auto model = linear_stack(options["layers"], options["width"], gen);
  model(rand({options["width"]}, gen)).sum().backward();
  const auto twin = model.clone();
  const std::int64_t numel = model.parameters()[0].numel();
  print(options["layers"], " tensors of ", numel, " elements; in the tail of ",
        "each: ", exact("tail", numel % 4));

  step("The launch");
  // The kernel is compiled now, by CUDA's run-time compiler (for the simulator
  // by the host's). Whoever launches it decides how many blocks there are: here
  // as many as the device can hold at a time, spread over the tensors.
  // Addresses and sizes travel as a parameter of the kernel, which has room for
  // :constant:`64 <AdamTensor at[#] @ common/bench/adam_by_hand.cu>` tensors:
  //
  // .. literalinclude:: /../common/bench/adam_by_hand_cuda.cpp
  //    :language: cpp
  //    :start-after: // [launch]
  //    :end-before: // [launch]
  //    :dedent: 2
  AdamByHand hand(model.parameters(), {.lr = 0.01});
  for (int i = 0; i < 2; ++i) hand.step();
  const auto counters = counters_of([&] { hand.step(); });
  print("launches per step: ", exact("by_hand_launches", counters.launches));

  step("The generated kernel");
  // The same :constant:`three <i < #; ++i) fn>` steps by ``compile``. In what
  // it wrote, ``compute`` is the update, with the same arithmetic. ``want``
  // asks for elements before they are needed, ``load`` and ``store`` of
  // ``Packs`` move several at a time. The loop around them is that of every
  // generated kernel and not shown. It walks over a table in the device's
  // memory, so there may be any number of tensors.
  //
  // .. kernel-beside:: common/bench/adam_by_hand.cu
  //    :mark: update
  //    :pairs: m: lerp; v: mul, addcmul; p: sqrt, div, add, addcdiv
  Adam adam(twin.parameters(), {.lr = 0.01});
  auto fn = compile([&] { adam.step(); });
  for (int i = 0; i < 3; ++i) fn();
  print("launches per step: ", exact("launches", fn.counters().launches / 3),
        "\n");
  print_block(fn.output_code());

  step("The same bits");
  // Different kernels, different ways over the tensors, the same result.
  const bool same = bitwise_equal(model.parameters(), twin.parameters());
  check(same, "the two kernels must agree");
  print("same bits: ", exact("bitwise_equal", same));

  step("Beside each other");  // by device
  // On a GPU both are timed in turns with a copy within the device's memory
  // that moves as many bytes, on tensors that are large. The simulator has no
  // speed worth a number.
  if (simulated) return print("not measured: this is a simulator");
  const auto large = linear_stack(10, 1024, gen);
  large(rand({1024}, gen)).sum().backward();
  Adam generated(large.parameters());
  auto large_fn = compile([&] { generated.step(); });
  AdamByHand large_hand(large.clone().parameters());
  const AccessPattern copy(std::vector<std::int64_t>(10, 1024 * 1024));
  const auto t = interleaved(
      {[&] { copy.run(); }, [&] { large_hand.step(); }, [&] { large_fn(); }});
  print("copy:            ", measured("copy_us", t[0].median_us(), "us"));
  print("by hand / copy:  ", ratio("by_hand", t[1], t[0], 0.97));
  print("compiled / copy: ", ratio("to_copy", t[2], t[0], 0.97));
}

// %%
// Change it
// ---------
//
// .. exercise:: no_tail
//
//    Give the layers a width of :constant:`256 <stack_options(4, #)>`. Which
//    loop has nothing left to do?
//
// .. exercise:: any_order
//
//    The simulator runs blocks and threads one after the other, in rising
//    order. Call ``set_sim_order(SimOrder::shuffled, 7)`` before the launches.
//    May the result change?
//
// .. exercise:: many_tensors
//
//    Make it :constant:`100 <stack_options(#, 9)>` layers of width
//    :constant:`9 <stack_options(100, #)>`. How many launches does each of the
//    two need for a step, and why?

int main(int argc, char** argv) {
  return run_recipe(argc, argv, one_kernel_by_hand, stack_options(4, 129));
}
