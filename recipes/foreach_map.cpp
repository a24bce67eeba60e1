#include "fusebook/fusebook.h"

using namespace fuse;

// %%
// Explicit horizontal fusion with foreach_map
// ===========================================
//
// The operations of a step come as list operations: ``foreach_lerp_`` blends
// every tensor of one list with that of another. There is one for each
// supported combination of lists and numbers. ``foreach_map`` turns this
// around: you write down what happens to *one element*, as an ordinary
// function, and it is applied to all elements of all tensors. In this recipe we
// write Adam twice that way, look at the :term:`kernel` that comes out, and
// check it against the Adam of the library.
//
// This retells `Explicit horizontal fusion with foreach_map and torch.compile
// <https://pytorch.org/tutorials/recipes/foreach_map.html>`_ by Michael Lazos.
// There ``foreach_map`` is a prototype: one output, no changes in place, and
// any shorter list cuts the others off. Here it takes several outputs, writes
// in place, and refuses lists that do not fit. You need nothing but a C++20
// compiler, also at run time; the original wants PyTorch 2.7 and a GPU.
//
// Operands may be, in any order: lists, lists with one number per tensor, one
// tensor that stands for a whole list, 0-d tensors and numbers.

// Everything that Adam works on, taken out of an optimizer: the gradients too,
// which the original collects and forgets to return.
struct Inputs {
  TensorList steps, params, grads, exp_avgs, exp_avg_sqs;
};

static Inputs get_inputs(const Adam& optim) {
  std::vector<Tensor> steps, grads, exp_avgs, exp_avg_sqs;
  const std::vector<Tensor> params = optim.parameters();
  for (const Tensor& p : params) {
    grads.push_back(p.grad());
    steps.push_back(optim.state(p, "step"));
    exp_avgs.push_back(optim.state(p, "exp_avg"));
    exp_avg_sqs.push_back(optim.state(p, "exp_avg_sq"));
  }
  return {TensorList::per_tensor(steps, "steps"),
          {params, "params"},
          {grads, "grads"},
          {exp_avgs, "exp_avgs"},
          {exp_avg_sqs, "exp_avg_sqs"}};
}

// %%
// Functions of one element
// ------------------------
//
// Each updates one state. They are called with values that stand for an element
// of a list, for the step count of a tensor, or for a number, and it does not
// matter which is which: the bias corrections depend on the step alone, so they
// will be worked out once per tensor.
constexpr auto update_exp_avg_sq = [](auto exp_avg_sq, auto grad, auto beta2) {
  return addcmul(exp_avg_sq * beta2, grad, grad, 1 - beta2);
};

constexpr auto update_param = [](auto param, auto step, auto exp_avg,
                                 auto exp_avg_sq, auto beta1, auto beta2,
                                 auto lr, auto eps) {
  const auto step_size = -(lr / (1 - pow(beta1, step)));
  const auto scale = sqrt(1 - pow(beta2, step)) * step_size;
  return param + exp_avg / (sqrt(exp_avg_sq) / scale + eps / step_size);
};

// %%
// Adam, state by state
// --------------------
//
// The shape of the original: one call for each state, and at the end the new
// lists are copied into the old ones. One thing differs. The original adds
// the weight decay to the gradients and throws the result away; here it goes on
// from there, in both versions.
struct Settings {
  double lr = 0.01, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, decay = 0.1;
};

static void foreach_map_adam(const Inputs& in, const Settings& s) {
  const auto steps = foreach_map([](auto x) { return x + 1; }, in.steps);
  foreach_copy_(in.steps, steps);
  const auto grads =
      foreach_map([](auto g, auto p, auto decay) { return g + decay * p; },
                  in.grads, in.params, s.decay);
  const auto exp_avgs = foreach_map(
      [](auto m, auto g, auto weight) { return lerp(m, g, weight); },
      in.exp_avgs, grads, 1 - s.beta1);
  const auto exp_avg_sqs =
      foreach_map(update_exp_avg_sq, in.exp_avg_sqs, grads, s.beta2);
  const auto params = foreach_map(update_param, in.params, in.steps, exp_avgs,
                                  exp_avg_sqs, s.beta1, s.beta2, s.lr, s.eps);
  foreach_copy_(in.exp_avgs, exp_avgs);
  foreach_copy_(in.exp_avg_sqs, exp_avg_sqs);
  foreach_copy_(in.params, params);
}

// %%
// Adam, all at once
// -----------------
//
// ``foreach_map_`` writes in place. The lists passed to ``into`` are the
// function's first arguments, and it returns a new value for each: the whole of
// Adam in one call. The last line is Adam's own formula: it divides first and
// scales afterwards, where the function above puts the step size into the
// denominator.
static void adam_at_once(const Inputs& in, const Settings& s) {
  foreach_map_(
      [&](auto step, auto m, auto v, auto p, auto g) {
        const auto next = step + 1;
        const auto grad = g + s.decay * p;
        const auto mean = lerp(m, grad, 1 - s.beta1);
        const auto square = update_exp_avg_sq(v, grad, s.beta2);
        const auto step_size = -(s.lr / (1 - pow(s.beta1, next)));
        const auto correction = sqrt(1 - pow(s.beta2, next));
        const auto denom = sqrt(square) / correction + s.eps;
        return std::tuple(next, mean, square,
                          addcdiv(p, mean, denom, step_size));
      },
      into(in.steps, in.exp_avgs, in.exp_avg_sqs, in.params), in.grads);
}

static void foreach_map_recipe(const Options& options) {
  step("Model setup");
  // A stack of linear layers with gradients, and :constant:`three <i < #; ++i)
  // { adams.emplace_back>` *true* copies of it. (In the original the copy is a
  // second random model, so that its comparison compares nothing.) Each gets an
  // optimizer with the same learning rate, which makes one step, so that all
  // states are there.
  Generator gen(0);
  const auto model = linear_stack(options["layers"], options["width"], gen);
  model(rand({options["width"]}, gen)).sum().backward();
  std::vector<Adam> adams;
  for (int i = 0; i < 3; ++i) {
    adams.emplace_back(model.clone().parameters(),
                       AdamOptions{.lr = 0.01, .weight_decay = 0.1});
    adams[i].step();
  }
  const Inputs inputs = get_inputs(adams[1]), whole = get_inputs(adams[2]);
  print(inputs.params.size(), " parameters");

  step("One launch");
  // Both are compiled like any other function. Several calls of ``foreach_map``
  // fuse with each other and with the copies: one :term:`launch`, and nothing
  // in between goes through memory.
  auto compiled_adam = compile([&] { foreach_map_adam(inputs, {}); });
  auto at_once = compile([&] { adam_at_once(whole, {}); });
  for (int i = 0; i < 5; ++i) {
    adams[0].step();
    compiled_adam();
    at_once();
  }
  assert_fused(compiled_adam);
  assert_fused(at_once);
  print_block(at_once.summary());

  step("The generated kernel");
  // This is what was compiled for the second version. Every value has a name,
  // and with each line stand the operation and the line of this recipe that
  // it comes from. Numbers are written in hex, which is exact, with the decimal
  // beside them.
  show_logs(Log::output_code);
  compile([&] { adam_at_once(whole, {}); })();
  set_logs(Log::output_code, false);
  adams[0].step();
  compiled_adam();

  step("The same numbers");
  // The version with Adam's formula has Adam's numbers to the last bit. The
  // other divides by a denominator that was put together in another order, so
  // it rounds differently: close, but not the same. (The original calls
  // ``allclose``, does not look at the answer, and gives the two optimizers
  // different learning rates.)
  const Inputs library = get_inputs(adams[0]);
  const bool same = bitwise_equal(library.params, whole.params);
  print("all at once, same bits as Adam: ", exact("same_bits", same));
  const auto apart = foreach_map([](auto x, auto y) { return abs(x - y); },
                                 library.params, inputs.params);
  double most = 0;
  for (const Tensor& each : apart)
    for (const double x : each.to_vector()) most = std::max(most, x);
  print("state by state, at most apart:  ", varying("apart", most, 0, 1e-6));

  step("A learning rate of zero");
  // That denominator has a catch: with ``lr = 0`` it divides by a step size of
  // zero. A parameter whose gradient was zero all along then gets zero divided
  // by zero. Adam's formula leaves it alone.
  Tensor still = full({2}, 1);
  still.set_grad(zeros({2}));
  Adam optim({still}, {.lr = 0.0});
  optim.step();
  adam_at_once(get_inputs(optim), {.lr = 0, .decay = 0});
  print("Adam's denominator:   ", still);
  foreach_map_adam(get_inputs(optim), {.lr = 0, .decay = 0});
  print("that of the original: ", still);

  step("Eager against compiled");
  // Outside of ``compile`` the same function runs :term:`eager`, and every list
  // in between goes through memory. Each pass over the lists is a launch. The
  // gradients take a product and a sum, the averages a ``lerp``, and a product
  // and an ``addcmul``; the parameters a root, divisions and sums; then come
  // the copies. That makes :value:`thirteen <eager, launches: #>` where the
  // compiled step makes :value:`one <compiled, launches: #>`, and eager takes
  // :value:`eager_us / compiled_us` the time. (The original asserts that its
  // compiled time is the smaller one. We print both, timed in turns; other
  // pages have the times of another moment.)
  const auto eager = [&] { foreach_map_adam(library, {}); };
  const auto t = interleaved({eager, compiled_adam});
  print("eager, launches: ", counters_of(eager).launches, ", ",
        measured("eager_us", t[0].median_us(), "us"));
  print("compiled, launches: ", counters_of(compiled_adam).launches, ", ",
        measured("compiled_us", t[1].median_us(), "us"));
}

// %%
// Change it
// ---------
//
// With fewer layers: ``./fusebook run foreach_map --layers 4``. Then change the
// program.
//
// .. exercise:: clip
//
//    Clip every element of the gradient to the range from :constant:`-0.01` to
//    :constant:`0.01`, inside the function of ``adam_at_once``. What does it
//    cost in bytes, and what becomes of the comparison with Adam?
//
// .. exercise:: pace
//
//    Let every element move at its own pace: a single tensor of factors, as
//    ``rand`` makes it, stands for every tensor of the list. Give it to
//    ``adam_at_once`` as one more operand that multiplies the step size.
//
// .. exercise:: float64
//
//    ``linear_stack`` and ``rand`` also take a dtype. What changes in the
//    kernel with ``DType::float64``, and how far are the two formulas apart?

int main(int argc, char** argv) {
  return run_recipe(argc, argv, foreach_map_recipe, stack_options(10, 1024));
}
