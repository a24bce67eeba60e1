#include "fusebook/fusebook.h"

using namespace fuse;

// %%
// Replaying a step
// ================
//
// A compiled step is one :term:`launch`, but a call of it is more than that. It
// runs your function, records what that does, compares the guards, and looks
// whether the tensors are still the same. All of it happens on the host, takes
// a few microseconds, and comes out the same every time. Where tensors are
// large nobody notices, because the GPU is busy for longer. Where they are
// small, it waits for the host.
//
// A :term:`CUDA graph` leaves all that out. The launch of one call is captured,
// and from then on replayed: one call of the driver, and nothing else. What the
// host no longer does, it can no longer decide, so a graph has its conditions.
// They are what this recipe is about.

// %%
// We will try a few captures that cannot work. The error says what to do.
static void try_to_capture(auto& fn) {
  try {
    capture_graph(fn);
  } catch (const Error& error) {
    print_error(error, {place(fn.place())});
  }
}

static void replaying_a_step(const Options& options) {
  step("A rate on the GPU");
  // The step runs on a GPU if there is one, else on a simulated one. The
  // optimizer has a twin, on an equal model: the steps of one will be replayed,
  // those of the other called. Their rates are 0-d tensors, and ``to(gpu)``
  // moves these to the memory of the GPU, where the kernel reads them itself.
  const Device gpu = gpu_or_simulator();
  set_default_device(gpu);
  Generator gen(0);
  const auto model = linear_stack(options["layers"], options["width"], gen);
  model(rand({options["width"]}, gen)).sum().backward();
  const auto twin = model.clone();
  const auto params = model.parameters(), twin_params = twin.parameters();
  Adam adam(params, {.lr = tensor(0.01).to(gpu)});
  Adam twins(twin_params, {.lr = tensor(0.01).to(gpu)});
  print("kernels run on: ", varying_text("gpu", device_model(gpu)));

  step("Call, capture, replay");
  // The first call compiles the kernel and tells the GPU where the tensors are.
  // ``capture_graph`` calls the function once more, without executing it on the
  // GPU: what would be launched goes into the graph. ``replay`` launches it,
  // as often as we like. Adam's step count lies on the GPU, so it goes on.
  auto fn = compile([&] { adam.step(); });
  const auto steps_done = [&] { return adam.state(params[0], "step"); };
  fn();
  CudaGraph graph = capture_graph(fn);
  print("steps done when captured: ", steps_done());
  for (int i = 0; i < 3; ++i) graph.replay();
  print("after three replays:      ", steps_done());
  print("launches:                 ",
        exact("launches", fn.counters().launches));

  step("The same bits");
  // A replay launches the same kernel on the same tensors.
  auto called = compile([&] { twins.step(); });
  for (int i = 0; i < 4; ++i) called();
  const auto same_bits = [&] { return bitwise_equal(params, twin_params); };
  print("same bits: ", exact("same_bits", same_bits()));

  step("A scheduler stays outside");
  // A graph holds the launch, not the C++ around it. A scheduler between
  // replays works as ever: it writes into the tensor that holds the rate, and
  // the next replay reads it from there. These writes and the launches happen
  // in the order in which they were asked for.
  ExponentialLR sched(adam, {.gamma = 0.5}), twins_sched(twins, {.gamma = 0.5});
  for (int i = 0; i < 3; ++i) {
    graph.replay();
    called();
    sched.step();
    twins_sched.step();
    print("lr: ", adam.group(0)["lr"]);
  }
  print("same bits: ", exact("same_bits_scheduled", same_bits()));

  step("Not inside");  // by device
  // Inside the function, the scheduler would move the rate while we capture
  // and never again. It must read the rate on the host for that, and a capture
  // does not let the host read anything.
  auto both = compile([&] {
    adam.step();
    sched.step();
  });
  both();
  try_to_capture(both);

  step("What would be frozen");
  // A tensor in host memory is read when the function runs, and its value goes
  // along with the launch. In a graph it would be that value forever. So it is
  // an error, and so is a plain number that has moved or has a scheduler. Other
  // plain numbers are built into the kernel anyway, and stay in it.
  SGD sgd(params, {.lr = tensor(0.01)});
  auto host_rate = compile([&] { sgd.step(); });
  host_rate();
  try_to_capture(host_rate);

  step("What it saves");  // by device
  // On a GPU, calls and replays are timed in turns, many of each in a row. The
  // longer time decides: that of the host, or that of the kernel. The
  // tensors are small here, so the difference is what the host no longer does.
  const bool simulated = gpu.kind == Device::Kind::cuda_sim;
  if (simulated) return print("not measured: this is a simulator");
  const auto t = interleaved({[&] { fn(); }, [&] { graph.replay(); }});
  print("a call:   ", measured("call_us", t[0].median_us(), "us"));
  print("a replay: ", measured("replay_us", t[1].median_us(), "us"));
}

// %%
// Change it
// ---------
//
// .. exercise:: zeros_too
//
//    Let the captured function set the gradients to zero as well:
//    ``adam.zero_grad(false)`` after the step. How many launches is a replay
//    now? And why do the parameters go on moving?
//
// .. exercise:: new_gradients
//
//    Between steps, give both models new gradients from another input:
//    once after ``zero_grad(false)``, once after ``zero_grad()``. Does the
//    replay use them?
//
// .. exercise:: plain_number
//
//    Give both optimizers a plain number for a rate: ``.lr = 0.01``. The
//    capture works. What becomes of the scheduler?

int main(int argc, char** argv) {
  return run_recipe(argc, argv, replaying_a_step, stack_options(10, 32));
}
