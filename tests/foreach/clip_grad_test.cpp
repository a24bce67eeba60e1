#include "fusebook/foreach/clip_grad.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/optim/all.h"
#include "fusebook/support/error.h"
#include "support/every_mode.h"
#include "support/tested_device.h"
#include "support/testing.h"

using namespace fuse;
using namespace testing;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Parameters with gradients of these elements.
std::vector<Tensor> params_with(const std::vector<std::vector<double>>& grads,
                                DType dtype = DType::float32) {
  std::vector<Tensor> params;
  for (const auto& values : grads) {
    Tensor param = full({std::int64_t(values.size())}, 0.5, dtype);
    param.set_grad(tensor(values, dtype));
    params.push_back(param);
  }
  return params;
}

std::vector<double> grads_of(const std::vector<Tensor>& params) {
  std::vector<double> all;
  for (const Tensor& param : params) {
    if (!param.grad().defined()) continue;
    for (const double x : param.grad().cpu().to_vector()) all.push_back(x);
  }
  return all;
}

// torch's formula, in long double.
long double norm_by_hand(const std::vector<double>& values, double norm_type) {
  long double sum = 0;
  for (const double value : values) {
    const long double x = std::fabs(static_cast<long double>(value));
    sum = std::isinf(norm_type)
              ? std::max(sum, x)
              : sum + std::pow(x, static_cast<long double>(norm_type));
  }
  return std::isinf(norm_type)
             ? sum
             : std::pow(sum, 1 / static_cast<long double>(norm_type));
}

std::vector<double> random_values(std::size_t count, Random& random) {
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(double(float(random.uniform(-2, 2))));
  }
  return values;
}

}  // namespace

TEST_CASE("gradients are scaled by torch's formula") {
  in_every_mode([](const Run& run) {
    Random random(1);
    for (const double norm_type : {2.0, 1.0, infinity, 3.0}) {
      for (const double max_norm : {0.25, 1e9}) {
        const auto params =
            params_with({random_values(9000, random), random_values(1, random),
                         random_values(77, random)});
        const auto before = grads_of(params);
        Scalar norm(0.0);
        run([&] { norm = clip_grad_norm_(params, max_norm, norm_type); });
        const auto wanted = double(norm_by_hand(before, norm_type));
        CHECK(norm.value() == doctest::Approx(wanted).epsilon(1e-13));
        const double factor = std::min(1.0, max_norm / (norm.value() + 1e-6));
        const auto after = grads_of(params);
        bool all = true;
        for (std::size_t i = 0; i < before.size(); ++i) {
          all = all && after[i] == double(float(before[i]) * float(factor));
        }
        CHECK(all);
      }
    }
  });
}

TEST_CASE("a norm that is not finite scales by NaN or 0") {
  in_every_mode([](const Run& run) {
    const auto with_nan = params_with({{1, NAN}, {2}});
    run([&] { clip_grad_norm_(with_nan, 1.0); });
    for (const double x : grads_of(with_nan)) CHECK(std::isnan(x));
    const auto with_infinity = params_with({{1, infinity}, {2}});
    run([&] { clip_grad_norm_(with_infinity, 1.0); });
    CHECK(grads_of(with_infinity)[0] == 0);
    CHECK(std::isnan(grads_of(with_infinity)[1]));
    CHECK(grads_of(with_infinity)[2] == 0);
  });
}

TEST_CASE("with error_if_nonfinite nothing changes") {
  const auto params = params_with({{1, infinity}, {2}});
  const std::string message =
      message_of<Error>([&] { clip_grad_norm_(params, 1.0, 2.0, true); });
  CHECK(message.find("the total norm of order 2 is inf") != std::string::npos);
  CHECK(grads_of(params) == std::vector<double>{1, infinity, 2});
  CHECK(clip_grad_norm_(params_with({{3, 4}}), 1.0, 2.0, true).value() == 5);
}

TEST_CASE("parameters without a gradient are passed over") {
  auto params = params_with({{3}, {4}});
  params.push_back(zeros({5}));
  CHECK(clip_grad_norm_(params, 2.5).value() == 5);
  CHECK(grads_of(params)[0] == doctest::Approx(1.5));
  CHECK(clip_grad_norm_({zeros({3})}, 1.0).value() == 0);
  CHECK(clip_grad_norm_({}, 1.0).value() == 0);
  clip_grad_value_({zeros({3})}, 1.0);
  CHECK(get_total_norm({}).value() == 0);
}

TEST_CASE("gradients of several dtypes have one norm") {
  in_every_mode([](const Run& run) {
    for (const double norm_type : {2.0, 1.0, infinity, 3.0}) {
      auto params = params_with({{3, -1}, {2}});
      for (const DType dtype : {DType::bfloat16, DType::float64}) {
        for (const Tensor& each : params_with({{-8}, {0.5}}, dtype)) {
          params.push_back(each);
        }
      }
      const auto wanted = double(norm_by_hand(grads_of(params), norm_type));
      Scalar norm(0.0);
      run([&] { norm = clip_grad_norm_(params, 1.0, norm_type); });
      CHECK(norm.value() == doctest::Approx(wanted));
      CHECK(params.back().grad().item() ==
            doctest::Approx(0.5 / (wanted + 1e-6)));
    }
  });
}

TEST_CASE("elements are clamped") {
  in_every_mode([](const Run& run) {
    const auto params = params_with({{-3, 0.25, 7}, {NAN}, {-0.5, -infinity}});
    run([&] { clip_grad_value_(params, 0.5); });
    const auto after = grads_of(params);
    CHECK(std::vector(after.begin(), after.begin() + 3) ==
          std::vector<double>{-0.5, 0.25, 0.5});
    CHECK(std::isnan(after[3]));
    CHECK(std::vector(after.begin() + 4, after.end()) ==
          std::vector<double>{-0.5, -0.5});
  });
}

TEST_CASE("a given norm serves") {
  const auto params = params_with({{3, 4}});
  const Scalar norm = get_total_norm({params[0].grad()});
  CHECK(norm.value() == 5);
  clip_grads_with_norm_(params, 1.0, norm);
  CHECK(params[0].grad().to_vector()[0] ==
        double(3.0F * float(1 / (5 + 1e-6))));
}

TEST_CASE("clipping and the step after it are one launch") {
  Random random(2);
  const std::vector<std::vector<double>> values = {random_values(20000, random),
                                                   random_values(300, random)};
  const auto train = [&](const std::vector<Tensor>& params, bool compiled,
                         Counters* counters) {
    Adam adam(params, {.lr = 0.01});
    auto step = compile(
        [&] {
          clip_grad_norm_(params, 0.5);
          adam.step();
        },
        {.fullgraph = true});
    for (int i = 0; i < 3; ++i) {
      for (std::size_t p = 0; p < params.size(); ++p) {
        params[p].grad().copy_(tensor(values[p]));
      }
      if (compiled) {
        step();
      } else {
        clip_grad_norm_(params, 0.5);
        adam.step();
      }
    }
    *counters = step.counters();
  };
  const auto fused = params_with(values);
  const auto eager = params_with(values);
  Counters counters;
  Counters none;
  train(fused, true, &counters);
  train(eager, false, &none);
  for (std::size_t p = 0; p < fused.size(); ++p) {
    CHECK(fused[p].to_vector() == eager[p].to_vector());
    CHECK(fused[p].grad().to_vector() == eager[p].grad().to_vector());
  }
  CHECK(counters.launches == 3);
  CHECK(counters.reduction_phases == 3);
  CHECK(counters.graph_breaks == 0);
  // Gradients are read twice and stored; steps are read and stored.
  CHECK(counters.bytes_moved == 3 * (20300 * (4 + 28 + 4) + 2 * 16));
}

// Gradients are new tensors in each step, as a backward pass makes them.
void set_new_grads(const std::vector<Tensor>& params, int step) {
  Random random(std::uint64_t(step) + 50);
  std::vector<Tensor> grads;
  for (const Tensor& param : params) {
    const Tensor grad = empty_like(param);
    for (std::int64_t i = 0; i < grad.numel(); ++i) {
      Tensor(grad).data<float>()[i] = float(random.uniform(-2, 2));
    }
    grads.push_back(grad);
  }
  for (std::size_t i = 0; i < params.size(); ++i) {
    Tensor(params[i]).set_grad(grads[i]);
  }
}

// Weights and biases in groups of their own, as they often are: the optimizer has
// the parameters in another order than the model.
std::unique_ptr<Optimizer> adamw_of(const std::vector<Tensor>& params) {
  AdamW::Group decayed({params[0], params[2]}, {.lr = 0.01});
  AdamW::Group others({params[1], params[3]},
                      {.lr = 0.02, .weight_decay = 0.0});
  return std::make_unique<AdamW>(std::vector{decayed, others});
}

std::unique_ptr<Optimizer> adam_of(const std::vector<Tensor>& params) {
  return std::make_unique<Adam>(params, AdamOptions{.lr = 0.01});
}

TEST_CASE("new gradients in other groups are clipped in the same launch") {
  for (const auto& make : {adam_of, adamw_of}) {
    std::vector<Tensor> fused = {full({300}, 0.5), full({3}, 0.5),
                                 full({9000}, 0.5), full({1}, 0.5)};
    std::vector<Tensor> eager;
    for (const Tensor& each : fused) eager.push_back(each.clone());
    const auto opt = make(fused);
    const auto by_hand = make(eager);
    Scalar norm(0.0);
    auto step = compile([&] {
      norm = clip_grad_norm_(fused, 0.5);
      opt->step();
    });
    for (int n = 0; n < 5; ++n) {
      set_new_grads(fused, n);
      set_new_grads(eager, n);
      step();
      const Scalar wanted = clip_grad_norm_(eager, 0.5);
      by_hand->step();
      CHECK(norm.value() == wanted.value());
      for (std::size_t p = 0; p < fused.size(); ++p) {
        CHECK(fused[p].to_vector() == eager[p].to_vector());
        CHECK(fused[p].grad().to_vector() == eager[p].grad().to_vector());
      }
    }
    // The first step makes the optimizer's lists, after gradients were clipped.
    const Counters before = step.counters();
    for (int n = 5; n < 10; ++n) {
      set_new_grads(fused, n);
      step();
    }
    const Counters after = step.counters() - before;
    CHECK(after.launches == 5);
    CHECK(after.reduction_phases == 5);
    CHECK(after.graph_breaks == 0);
    CHECK(after.compilations == 0);
    // Gradients are read twice and stored; the norm is stored.
    CHECK(after.bytes_moved == 5 * (9304 * (4 + 28 + 4) + 4 * 16 + 8));
  }
}

// Kinds of groups that need lists of their own.
TEST_CASE("the first call of clipping and a step of two groups is one launch") {
  using Groups = std::vector<Adam::Group>;
  const auto other_rate = [](const auto& p) {
    return Groups{{{p[0], p[2]}, {.lr = 0.01}}, {{p[1], p[3]}, {.lr = 0.02}}};
  };
  const auto other_kind = [](const auto& p) {
    return Groups{{{p[3], p[0]}, {.lr = 0.01, .amsgrad = true}},
                  {{p[2], p[1]}, {.lr = 0.02, .weight_decay = 0.1}}};
  };
  const auto by_norm = [](const auto& params) { clip_grad_norm_(params, 0.5); };
  const auto by_value = [](const auto& params) {
    clip_grad_value_(params, 0.25);
  };
  using Make = std::function<Groups(const std::vector<Tensor>&)>;
  using Clip = std::function<void(const std::vector<Tensor>&)>;
  for (const Make& make : {Make(other_rate), Make(other_kind)}) {
    for (const Clip& clip : {Clip(by_norm), Clip(by_value)}) {
      std::vector<Tensor> fused = {full({300}, 0.5), full({3}, 0.5),
                                   full({9000}, 0.5), full({1}, 0.5)};
      std::vector<Tensor> eager;
      for (const Tensor& each : fused) eager.push_back(each.clone());
      Adam opt(make(fused));
      Adam by_hand(make(eager));
      auto step = compile(
          [&] {
            clip(fused);
            opt.step();
          },
          {.fullgraph = true});
      for (int n = 0; n < 4; ++n) {
        set_new_grads(fused, n);
        set_new_grads(eager, n);
        if (n == 2) {  // another set of parameters takes part
          fused[2].set_grad(Tensor());
          eager[2].set_grad(Tensor());
        }
        step();
        clip(eager);
        by_hand.step();
        for (std::size_t p = 0; p < fused.size(); ++p) {
          CHECK(fused[p].to_vector() == eager[p].to_vector());
        }
      }
      CHECK(step.counters().launches == 4);
      CHECK(step.counters().graph_breaks == 0);
      CHECK(step.counters().compilations == 1);
    }
  }
}

TEST_CASE("the order of the parameters decides about the bits of their norm") {
  std::vector<Tensor> params = {full({300}, 0.5), full({3}, 0.5),
                                full({9000}, 0.5), full({1}, 0.5)};
  set_new_grads(params, 1);
  const double before = get_total_norm({params[0].grad(), params[1].grad(),
                                        params[2].grad(), params[3].grad()})
                            .value();
  const auto opt = adamw_of(params);
  opt->step();
  CHECK(clip_grad_norm_(params, 1e9).value() == before);
}

TEST_CASE("gradients that others keep are found as long as they fit") {
  std::vector<Tensor> params = params_with({{3, 0}, {0, 4}, {12}});
  {
    const auto opt = adam_of(params);
    opt->step();
    CHECK(clip_grad_norm_(params, 1e9).value() == 13);
    CHECK(clip_grad_norm_({params[0], params[1]}, 1e9).value() == 5);
    params[2].set_grad(Tensor());
    CHECK(clip_grad_norm_(params, 1e9).value() == 5);
    params[2].set_grad(tensor({12.0}, DType::float64));
    CHECK(clip_grad_norm_(params, 1e9).value() == 13);
    CHECK(clip_grad_norm_({params[0], params[1]}, 1e9).value() == 5);
  }
  CHECK(clip_grad_norm_(params, 1e9).value() == 13);
  clip_grad_value_(params, 2.0);
  CHECK(grads_of(params) == std::vector<double>{2, 0, 0, 2, 2});
}

TEST_CASE("gradients on a GPU are clipped there") {
  std::vector<Tensor> params;
  for (const Tensor& host : params_with({{3}, {0, 4}})) {
    Tensor param = host.to(tested_device());
    param.set_grad(host.grad().to(tested_device()));
    params.push_back(param);
  }
  auto step =
      compile([&] { clip_grad_norm_(params, 1.0); }, {.fullgraph = true});
  step();
  const auto factor = float(1 / (5 + 1e-6));
  CHECK(grads_of(params) ==
        std::vector<double>{double(3 * factor), 0, double(4 * factor)});
  CHECK(clip_grad_norm_(params, 0.5).value() ==
        doctest::Approx(1).epsilon(1e-6));
}

TEST_CASE("an undefined parameter is an error") {
  CHECK(message_of<Error>([] {
          clip_grad_norm_({zeros({1}), Tensor()}, 1.0);
        }).find("tensor 1 is undefined") != std::string::npos);
}
