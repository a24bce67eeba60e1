#include "example.h"

using namespace fuse;

static std::string text_of(const Tensor& tensor) {
  std::string text;
  for (const double value : tensor.to_vector()) {
    text += (text.empty() ? "" : ",") + number_text(value);
  }
  return text;
}

// A parameter of as many elements as there are `factors` of their gradients.
struct Run {
  double start = 1.0;
  std::vector<double> grads = {0.5, 0.25, -1.0, -0.5, 2.0, 0.125, 0.75, -0.25};
  std::vector<double> factors = {1.0};
};

// What the page of the formulas is checked with: the numbers of an optimizer, and
// in float64 a parameter, before and after each of some steps with given gradients.
// Some of its states may be asked for, too.
template <class Optimizer, class Options>
static void print_steps(const Options& options, auto numbers,
                        const std::vector<std::string>& states = {},
                        const Run& run = {}) {
  each_scalar(numbers,
              [](const std::string& name, int index, const Scalar& number) {
                print(name, index < 0 ? "" : std::to_string(index + 1), " = ",
                      number.value());
              });
  print("p = ", run.start);
  Tensor p =
      full({std::int64_t(run.factors.size())}, run.start, DType::float64);
  Optimizer optimizer({p}, options);
  for (const double g : run.grads) {
    std::vector<double> grads = run.factors;
    for (double& each : grads) each *= g;
    p.set_grad(tensor(grads, DType::float64));
    optimizer.step();
    std::string line = text_of(p.grad()) + " -> " + text_of(p);
    for (const std::string& name : states) {
      line += " " + name + " " + text_of(optimizer.state(p, name));
    }
    print(line);
  }
}

template <class Optimizer, class Options>
static void print_steps(const Options& options,
                        const std::vector<std::string>& states = {}) {
  print_steps<Optimizer>(options, options, std::move(states));
}

EXAMPLE(maths_sgd) {
  print_steps<SGD>(SGDOptions{
      .lr = 0.1, .momentum = 0.9, .dampening = 0.25, .weight_decay = 0.05});
}

EXAMPLE(maths_sgd_nesterov) {
  print_steps<SGD>(SGDOptions{
      .lr = 0.1, .momentum = 0.9, .weight_decay = 0.05, .nesterov = true});
}

EXAMPLE(maths_adam) {
  print_steps<Adam>(AdamOptions{
      .lr = 0.1, .betas = {0.9, 0.99}, .eps = 1e-3, .weight_decay = 0.05});
}

EXAMPLE(maths_adamw) {
  const AdamWOptions options{
      .lr = 0.1, .betas = {0.9, 0.99}, .eps = 1e-3, .weight_decay = 0.05};
  print_steps<AdamW>(options, options.as_adam());
}

EXAMPLE(maths_nadam) {
  print_steps<NAdam>(NAdamOptions{.lr = 0.1,
                                  .betas = {0.9, 0.99},
                                  .eps = 1e-3,
                                  .weight_decay = 0.05,
                                  .momentum_decay = 0.01});
}

EXAMPLE(maths_radam) {
  print_steps<RAdam>(RAdamOptions{
      .lr = 0.1, .betas = {0.9, 0.95}, .eps = 1e-3, .weight_decay = 0.05});
}

EXAMPLE(maths_adamax) {
  print_steps<Adamax>(AdamaxOptions{
      .lr = 0.1, .betas = {0.9, 0.99}, .eps = 1e-3, .weight_decay = 0.05});
}

EXAMPLE(maths_rmsprop) {
  print_steps<RMSprop>(RMSpropOptions{.lr = 0.1,
                                      .alpha = 0.9,
                                      .eps = 1e-3,
                                      .weight_decay = 0.05,
                                      .momentum = 0.5});
}

EXAMPLE(maths_adagrad) {
  print_steps<Adagrad>(AdagradOptions{.lr = 0.1,
                                      .lr_decay = 0.2,
                                      .weight_decay = 0.05,
                                      .initial_accumulator_value = 0.5,
                                      .eps = 1e-3});
}

EXAMPLE(maths_adadelta) {
  print_steps<Adadelta>(AdadeltaOptions{
      .lr = 0.5, .rho = 0.8, .eps = 1e-3, .weight_decay = 0.05});
}

EXAMPLE(maths_rprop) {
  print_steps<Rprop>(
      RpropOptions{.lr = 0.1, .etas = {0.5, 1.2}, .step_sizes = {0.06, 0.11}});
}

EXAMPLE(maths_asgd) {
  print_steps<ASGD>(ASGDOptions{.lr = 0.1,
                                .lambd = 0.2,
                                .alpha = 0.75,
                                .t0 = 3,
                                .weight_decay = 0.05},
                    {"ax"});
}

// Of two elements, so that a norm is not the size of one. The first step meets
// parameters without length.
EXAMPLE(maths_lamb) {
  const LAMBOptions options{
      .lr = 0.1, .betas = {0.9, 0.99}, .eps = 1e-3, .weight_decay = 0.05};
  print_steps<LAMB>(options, options, {}, {.start = 0.0, .factors = {1.0, -0.5}});
}

// And a direction without length.
EXAMPLE(maths_lamb_at_rest) {
  const LAMBOptions options{
      .lr = 0.1, .betas = {0.9, 0.99}, .eps = 1e-3, .weight_decay = 0.0};
  print_steps<LAMB>(options, options, {},
                    {.grads = {0.0, 0.5, -1.0}, .factors = {1.0, -0.5}});
}

EXAMPLE(maths_lars) {
  const LARSOptions options{.lr = 0.5,
                            .momentum = 0.9,
                            .weight_decay = 0.05,
                            .trust_coefficient = 0.125,
                            .eps = 1e-3};
  print_steps<LARS>(options, options, {},
                    {.start = 0.0,
                     .grads = {0.5, 0.25, -1.0, 0.0, 2.0, 0.125},
                     .factors = {1.0, -0.5}});
}
