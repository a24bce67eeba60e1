#include <algorithm>

#include "example.h"

using namespace fuse;

// With semicolons between the rows of a matrix.
static std::string text_of(const Tensor& tensor) {
  const std::int64_t columns = tensor.dim() == 2 ? tensor.shape()[1] : 0;
  std::string text;
  std::int64_t place = 0;
  for (const double value : tensor.to_vector()) {
    const bool ends = columns > 0 && place % columns == 0;
    text += (place == 0 ? "" : ends ? ";" : ",") + number_text(value);
    ++place;
  }
  return text;
}

// A parameter of as many elements as there are `factors` of their gradients; with
// `columns` it is a matrix, whose factors change places from step to step.
struct Run {
  double start = 1.0;
  std::vector<double> grads = {0.5, 0.25, -1.0, -0.5, 2.0, 0.125, 0.75, -0.25};
  std::vector<double> factors = {1.0};
  std::int64_t columns = 0;

  [[nodiscard]] Shape shape() const {
    const auto count = std::int64_t(factors.size());
    return columns > 0 ? Shape{count / columns, columns} : Shape{count};
  }
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
  Tensor p = full(run.shape(), run.start, DType::float64);
  Optimizer optimizer({p}, options);
  std::vector<double> factors = run.factors;
  for (const double g : run.grads) {
    std::vector<double> grads = factors;
    for (double& each : grads) each *= g;
    p.set_grad(tensor(grads, DType::float64).view(run.shape()));
    if (run.columns > 0) std::ranges::rotate(factors, factors.begin() + 1);
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

EXAMPLE(maths_ademamix) {
  print_steps<AdEMAMix>(AdEMAMixOptions{.lr = 0.1,
                                        .betas = {0.9, 0.99, 0.999},
                                        .alpha = 2.0,
                                        .t_alpha = 4.0,
                                        .t_beta3 = 5.0,
                                        .eps = 1e-3,
                                        .weight_decay = 0.05});
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
  print_steps<LAMB>(options, options, {},
                    {.start = 0.0, .factors = {1.0, -0.5}});
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

static MuonOptions muon_options() {
  return {.lr = 0.1, .weight_decay = 0.05, .momentum = 0.75, .eps = 0.5};
}

// The last gradients are shorter than eps.
EXAMPLE(maths_muon) {
  const MuonOptions options = muon_options();
  print("ns_steps = ", options.ns_steps);
  print_steps<Muon>(options, options, {},
                    {.grads = {0.5, -0.25, 1.0, 0.125, 0.0625, -0.03125},
                     .factors = {1.0, -0.5, 0.25, 0.75, -0.125, 0.5},
                     .columns = 2});
}

// A matrix with more columns than rows.
EXAMPLE(maths_muon_wide) {
  const MuonOptions options = muon_options();
  print("ns_steps = ", options.ns_steps);
  print_steps<Muon>(options, options, {},
                    {.grads = {0.5, -0.25, 1.0},
                     .factors = {1.0, -0.5, 0.25, 0.75, -0.125, 0.5},
                     .columns = 3});
}

static AdafactorOptions adafactor_options(double eps) {
  return {.lr = 0.5, .eps = {eps, 0.75}, .d = 1.125, .weight_decay = 0.05};
}

EXAMPLE(maths_adafactor) {
  const AdafactorOptions options = adafactor_options(1e-3);
  print_steps<Adafactor>(options, options, {},
                         {.grads = {0.5, -0.25, 1.0, 0.125, 2.0, -0.5},
                          .factors = {1.0, -0.5, 0.25, 0.75, -0.125, 0.5},
                          .columns = 2});
}

// Gradients with smaller squares than the least.
EXAMPLE(maths_adafactor_small) {
  const AdafactorOptions options = adafactor_options(0.125);
  print_steps<Adafactor>(options, options, {},
                         {.start = 0.5,
                          .grads = {0.03125, -0.0625, 0.015625, 0.25, 0.0625},
                          .factors = {1.0, -0.5, 0.25, 0.75, -0.125, 0.5},
                          .columns = 3});
}

EXAMPLE(maths_adafactor_vectors) {
  const AdafactorOptions options = adafactor_options(1e-3);
  print_steps<Adafactor>(
      options, options, {},
      {.grads = {0.5, -0.25, 1.0, 0.125, 2.0, -0.5}, .factors = {1.0, -0.5}});
}

EXAMPLE(maths_adafactor_vectors_small) {
  const AdafactorOptions options = adafactor_options(0.125);
  print_steps<Adafactor>(options, options, {},
                         {.start = 0.5,
                          .grads = {0.03125, -0.0625, 0.015625, 0.25, 0.0625},
                          .factors = {1.0, -0.5}});
}
