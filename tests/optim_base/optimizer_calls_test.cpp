// How a step is called: with a closure, between hooks, and under which place
// messages know it.
#include <doctest/doctest.h>

#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/nn/functional.h"
#include "fusebook/optim/all.h"
#include "fusebook/support/error.h"
#include "support/checkpoint_testing.h"
#include "support/lion.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;
using testing::contains;
using testing::message_of;

namespace {

using Here = std::source_location;

std::string line_of(const Here& here, unsigned offset = 0) {
  return std::string(here.file_name()) + ":" +
         std::to_string(here.line() + offset);
}

}  // namespace

TEST_CASE("errors of every optimizer name the line that called the step") {
  for (const auto& kind : checkpoint_testing::kinds()) {
    CAPTURE(kind.name);
    const auto opt = kind.make(false);
    const Tensor param = opt->group(0).params[0];
    param.impl()->grad = zeros({3, 3}).impl();
    Here here;
    const auto eager = message_of<Error>([&] {
      here = Here::current();
      opt->step();
    });
    CHECK(contains(eager, ", at " + line_of(here, 1)));
    auto step = compile([&] {
      here = Here::current();
      opt->step();
    });
    const auto compiled = message_of<Error>([&] { step(); });
    CHECK(contains(compiled, ", at " + line_of(here, 1)));
  }
}

TEST_CASE("overlaps and graph breaks name the line that called the step") {
  const Tensor both = zeros({12});
  std::vector<Tensor> params = {both.narrow(0, 0, 8), both.narrow(0, 4, 8)};
  for (Tensor& param : params) param.set_grad(full({8}, 1));
  SGD sgd(params);
  Here here;
  auto step = compile([&] {
    here = Here::current();
    sgd.step();
  });
  const std::string overlap = message_of<Error>([&] { step(); });
  CHECK(contains(overlap, "(stored at " + line_of(here, 1)));

  SGD fine({params[0]});
  auto broken = compile(
      [&] {
        here = Here::current();
        fine.step();
        static_cast<void>(params[0].to_vector());
      },
      {.fullgraph = true});
  const std::string message = message_of<Error>([&] { broken(); });
  CHECK(contains(message, "graph break"));
  LogCapture log(Log::graph);
  auto breaks = compile([&] {
    here = Here::current();
    fine.step();
    static_cast<void>(params[0].to_vector());
  });
  breaks();
  const std::string logged = log.take();
  CHECK(contains(logged, "after the operation at " + line_of(here, 1)));
}

TEST_CASE("optimizers that share a parameter: both steps are named") {
  const auto params = make_params({{4}, {3}}, 1);
  Adam all(params);
  SGD some({params[0]});
  Here here;
  LogCapture log(Log::graph);
  auto both = compile([&] {
    here = Here::current();
    all.step();
    some.step();
  });
  both();
  CHECK(contains(log.take(),
                 "graph break in function step: params[0] is read "
                 "at " +
                     line_of(here, 2) + " and overlaps params[0], stored at " +
                     line_of(here, 1)));
}

TEST_CASE("a step with a closure returns the loss") {
  for (const bool compiled : {false, true}) {
    Tensor param = full({2}, 3);
    SGD sgd({param}, {.lr = 0.5});
    int calls = 0;
    const auto closure = [&] {
      ++calls;
      sgd.zero_grad();
      param.set_grad(full({2}, 2));
      return tensor(0.25);
    };
    Tensor loss;
    auto step = compile([&] { loss = sgd.step(closure); });
    for (int i = 1; i <= 2; ++i) {
      loss = Tensor();
      if (compiled) {
        step();
      } else {
        loss = sgd.step(closure);
      }
      CHECK(loss.item() == 0.25);
      CHECK(param.to_vector() == std::vector<double>(2, 3.0 - i));
      CHECK(calls == i);
    }
    if (compiled) {
      CHECK(step.counters().launches == 2);
      CHECK(step.counters().compilations == 1);
    }
  }
}

TEST_CASE("a closure that throws makes no step") {
  Tensor param = full({2}, 3);
  param.set_grad(full({2}, 2));
  SGD sgd({param}, {.lr = 0.5});
  CHECK(message_of<Error>([&] {
          sgd.step([]() -> double { throw Error("no loss"); });
        }) == "no loss");
  CHECK(sgd.steps() == 0);
  CHECK(param.to_vector() == std::vector<double>{3, 3});
}

TEST_CASE("hooks run before and after each step until they are removed") {
  const auto params = make_params({{4}}, 1);
  auto sgd = std::make_unique<SGD>(params);
  std::vector<std::string> seen;
  const auto first = sgd->register_step_pre_hook([&](Optimizer& opt) {
    seen.push_back("before " + std::to_string(opt.steps()));
  });
  const auto second = sgd->register_step_pre_hook(
      [&](Optimizer&) { seen.emplace_back("second"); });
  const auto after = sgd->register_step_post_hook([&](Optimizer& opt) {
    seen.push_back("after " + std::to_string(opt.steps()));
  });
  using Seen = std::vector<std::string>;
  auto step = compile([&] { sgd->step(); });
  step();
  CHECK(seen == Seen{"before 0", "second", "after 1"});
  CHECK(step.counters().launches == 1);
  seen.clear();
  first.remove();
  first.remove();  // once more is no harm
  sgd->step();
  CHECK(seen == Seen{"second", "after 2"});
  seen.clear();
  sgd->step([&] {
    seen.emplace_back("closure");
    return 0.0;
  });
  CHECK(seen == Seen{"second", "closure", "after 3"});
  second.remove();
  sgd.reset();
  after.remove();  // of an optimizer that is gone
}

TEST_CASE("a hook may remove itself, and one that throws makes no step") {
  const auto params = make_params({{4}}, 1);
  SGD sgd(params);
  int calls = 0;
  std::unique_ptr<RemovableHandle> handle;
  handle = std::make_unique<RemovableHandle>(
      sgd.register_step_pre_hook([&](Optimizer&) {
        ++calls;
        handle->remove();
      }));
  const auto next =
      sgd.register_step_pre_hook([&](Optimizer&) { calls += 10; });
  sgd.step();
  CHECK(calls == 11);
  sgd.step();
  CHECK(calls == 21);
  next.remove();
  sgd.register_step_pre_hook([](Optimizer&) { throw Error("not today"); });
  CHECK(message_of<Error>([&] { sgd.step(); }) == "not today");
  CHECK(sgd.steps() == 2);
}

TEST_CASE("a gradient that leads back to its tensor does not keep it") {
  std::weak_ptr<TensorImpl> one;
  std::weak_ptr<TensorImpl> other;
  {
    Tensor p = full({2}, 3);
    p.set_grad(p);
    one = p.impl();
    CHECK(p.grad().raw_data() == p.raw_data());
    Tensor a = full({2}, 1);
    Tensor b = full({2}, 2);
    a.set_grad(b);
    b.set_grad(a);
    other = a.impl();
    CHECK(b.grad().to_vector() == std::vector<double>{1, 1});
    SGD sgd({p}, {.lr = 0.5});
    sgd.step();
    CHECK(p.to_vector() == std::vector<double>{1.5, 1.5});
  }
  CHECK(one.expired());
  CHECK(other.expired());
}

TEST_CASE("a gradient that was computed from its tensor does not keep it") {
  std::weak_ptr<TensorImpl> watch;
  {
    Tensor p = full({2}, 3);
    p.requires_grad_();
    watch = p.impl();
    const Tensor square = mul(p, p);
    p.set_grad(square);
    CHECK(p.grad().raw_data() == square.raw_data());
    CHECK_FALSE(p.grad().requires_grad());
    CHECK(square.requires_grad());
    SGD sgd({p}, {.lr = 0.5});
    sgd.step();
    CHECK(p.to_vector() == std::vector<double>{-1.5, -1.5});
  }
  CHECK(watch.expired());
}

TEST_CASE("errors of groups name the line that asked for them") {
  const Tensor param = zeros({2});
  SGD sgd({param}, {.lr = 1});
  Here here;
  std::string message = message_of<Error>([&] {
    here = Here::current();
    sgd.add_param_group({param});
  });
  CHECK(message ==
        "optimizer: parameter 0 of group 1 is the same tensor as parameter 0 "
        "of group 0, at " +
            line_of(here, 1) + "; put each parameter in one group only");
  message = message_of<Error>([&] {
    here = Here::current();
    sgd.add_param_group({zeros({1})}, {{"lr", -1}});
  });
  CHECK(message == "SGD: invalid learning rate: -1, at " + line_of(here, 1));
  message = message_of<Error>([&] {
    here = Here::current();
    sgd.add_param_group(SGD::Group({param}));
  });
  CHECK(contains(message, ", at " + line_of(here, 1)));
  message = message_of<Error>([&] {
    here = Here::current();
    sgd.group(9);
  });
  CHECK(message == "SGD: parameter group 9 is out of range, at " +
                       line_of(here, 1) + "; group_count() is 1");
  sgd.param_groups.push_back(sgd.param_groups[0]);
  message = message_of<Error>([&] {
    here = Here::current();
    sgd.step();
  });
  CHECK(contains(message, ", at " + line_of(here, 1) + "; put each parameter"));
  message = message_of<Error>([&] {
    here = Here::current();
    static_cast<void>(sgd.gradient_lists());
  });
  CHECK(contains(message, ", at " + line_of(here, 1)));
}

TEST_CASE("errors of steps by address name the line that called them") {
  const Tensor param = zeros({2}, DType::float32, parse_device("cuda-sim"));
  SGD sgd({param}, {.lr = 1});
  Here here;
  const std::vector<const void*> none;
  std::string message = message_of<Error>([&] {
    here = Here::current();
    sgd.step({.grads = none});
  });
  CHECK(contains(message, "but got 0, at " + line_of(here, 1) + "; pass null"));
  const std::vector<const void*> odd = {
      static_cast<const char*>(param.raw_data()) + 1};
  message = message_of<Error>([&] {
    here = Here::current();
    sgd.step({.grads = odd});
  });
  CHECK(contains(message, "as a GPU requires, at " + line_of(here, 1)));
}

TEST_CASE("an optimizer may have any number of betas") {
  std::array<Scalar, 12> betas = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5,
                                  0.5, 0.5, 0.5, 0.5, 0.5, 0.5};
  CHECK_NOTHROW(check_betas("Many", betas));
  betas[11] = 1;
  CHECK(message_of<Error>([&] { check_betas("Many", betas); }) ==
        "Many: invalid beta parameter at index 11: 1");
}
