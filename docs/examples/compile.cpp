#include "example.h"

using namespace fuse;

EXAMPLE(compile) {
  Tensor weight = tensor({1.0, 2.0, 3.0});
  weight.set_grad(tensor({0.5, 0.5, -0.5}));
  Adam adam({weight}, {.lr = 0.1});
  auto step = compile([&] { adam.step(); });
  for (int i = 0; i < 3; ++i) step();
  print(weight);
  print("launches: ", step.counters().launches,
        ", compilations: ", step.counters().compilations);
  print_block(step.summary());
}

EXAMPLE(policies) {
  Tensor weight = tensor({1.0});
  weight.set_grad(tensor({1.0}));
  SGD sgd({weight}, {.lr = 0.5});
  auto step = compile([&] { sgd.step(); },
                      {.name = "sgd", .policy = Policy::fail_on_recompile});
  step();
  sgd.param_groups[0]["lr"] = 0.25;
  try {
    step();
  } catch (const RecompileError& error) {
    const GuardFailure& failure = error.report().failures[0];
    print(failure.path, " was ", failure.guarded, " and is ", failure.now);
  }
  print("untouched: ", weight);
}

EXAMPLE(assert_fused) {
  const TensorList list = {tensor({1.0, 2.0}), tensor({3.0})};
  auto doubled = compile([&] { foreach_mul_(list, 2); });
  doubled();
  assert_fused(doubled);
  auto looks = compile([&] {
    foreach_add_(list, 1);
    print("in between: ", list[1]);
    foreach_mul_(list, 2);
  });
  looks();
  print("launches of the second: ", looks.counters().launches,
        ", graph breaks: ", looks.counters().graph_breaks);
}

EXAMPLE(options_of_compile) {
  Tensor x = tensor({1.0});
  const CompileOptions options = {.name = "doubled",
                                  .backend = Backend::interpreted,
                                  .policy = policy_named("specialize")};
  Compiled doubled = compile([&] { foreach_mul_(TensorList{x}, 2); }, options);
  doubled();
  print(x, ", compilations: ", doubled.counters().compilations);
  for (const char* policy : policy_names) print(policy);
  print("kernels for the same operations, at most: ", specialization_limit,
        ", for different ones: ", operations_limit);
}
