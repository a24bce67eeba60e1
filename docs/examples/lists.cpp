#include "example.h"

using namespace fuse;

EXAMPLE(foreach) {
  const TensorList params = {tensor({1.0, 2.0}), tensor({3.0})};
  const TensorList grads = {tensor({10.0, 10.0}), tensor({10.0})};
  foreach_sub_(params, foreach_mul(grads, 0.1));
  for (const Tensor& each : params) print(each);
}

EXAMPLE(reductions) {
  const TensorList grads = {tensor({3.0, 4.0}), tensor({12.0})};
  const TensorList norms = foreach_norm(grads);
  print(norms[0], " ", norms[1], " ", total_norm(grads).value());
  auto normalize = compile([&] { foreach_div_(grads, total_norm(grads)); });
  normalize();
  print(grads[0], " ", grads[1]);
  print(normalize.counters().launches, " launch, ",
        normalize.counters().reduction_phases, " phase that reduces");
}

EXAMPLE(foreach_map) {
  const TensorList params = {tensor({1.0, 2.0}), tensor({3.0})};
  const TensorList grads = {tensor({10.0, -10.0}), tensor({0.0})};
  const auto signs = foreach_map([](auto g) { return sign(g); }, grads);
  print(signs[0], " ", signs[1]);
  foreach_map_([](auto p, auto g) { return where(g > 0, p - 0.5, p); }, params,
               grads);
  print(params[0], " ", params[1]);
}

EXAMPLE(lists_that_do_not_fit) {
  const TensorList two = {tensor({1.0}), tensor({2.0})};
  const TensorList one = {tensor({1.0})};
  try {
    foreach_add_(two, one);
  } catch (const Error& error) {
    print(error.what());
  }
}

// One operation, for the page of all of them.
EXAMPLE(three_ways) {
  const TensorList params = {tensor({1.0, 2.0})};
  const TensorList grads = {tensor({11.0, -8.0})};
  const TensorList exp_avgs = {zeros({2})};

  const TensorList blended = foreach_lerp(params, grads, 0.1);
  foreach_lerp_(exp_avgs, grads, 0.1);
  foreach_map_([](auto m, auto g) { return lerp(m, g, 0.1); }, exp_avgs, grads);
  print(blended[0]);
  print(exp_avgs[0]);
}

EXAMPLE(sums_and_maxima) {
  const TensorList list = {tensor({1.0, 2.0}), tensor({-3.0})};
  print(foreach_sum(list)[0], " ", foreach_amax(list)[1]);
  print(foreach_to(list, float64)[0]);
  foreach_zero_(list);
  print(list[0]);
}

EXAMPLE(clipping) {
  Tensor x = tensor({0.0, 0.0});
  const std::vector<Tensor> params = {x};
  x.set_grad(tensor({3.0, 4.0}));
  const Scalar norm = get_total_norm({x.grad()});
  clip_grads_with_norm_(params, 2.5, norm);
  print(norm, " ", x.grad());
  clip_grad_value_(params, 1.0);
  print(x.grad());
}
