// Lists that share memory in one recording: it is cut where eager mode would
// see the order, with the bits of eager mode.
#include "fusebook/ir/order.h"

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/foreach/foreach_map.h"
#include "fusebook/optim/all.h"
#include "fusebook/support/error.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;
using testing::contains;
using testing::message_of;

namespace {

// What a function works on, and what it does.
struct World {
  std::function<void()> body;
  std::vector<Tensor> watched;
  std::shared_ptr<void> kept;  // optimizers
};

struct Pattern {
  std::string name;
  std::int64_t breaks;
  std::function<World()> make;
};

// Numbers that rounding tells apart.
Tensor counted(const Shape& shape, double first = 1,
               DType dtype = DType::float32) {
  Tensor tensor = empty(shape, dtype);
  std::vector<double> values;
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    values.push_back((first + double(i)) / 7);
  }
  assign(tensor, values);
  return tensor;
}

std::vector<Tensor> counted_params(std::size_t count) {
  std::vector<Tensor> params;
  for (std::size_t i = 0; i < count; ++i) {
    params.push_back(counted({std::int64_t(i) + 3, 2}, double(i) + 1));
    params.back().set_grad(counted({std::int64_t(i) + 3, 2}, double(i) - 2));
  }
  return params;
}

template <class First, class Second>
World two_optimizers(const std::vector<Tensor>& all,
                     const std::vector<Tensor>& some,
                     decltype(First::Group::options) first,
                     decltype(Second::Group::options) second) {
  struct Both {
    First all;
    Second some;
  };
  auto both = std::make_shared<Both>(
      Both{First({{all, first}}), Second({{some, second}})});
  return {[both] {
            both->all.step();
            both->some.step();
          },
          all, both};
}

// Two lists into one piece of memory, so many floats apart.
struct Shifted {
  explicit Shifted(std::int64_t by)
      : whole(counted({20})),
        a({whole.narrow(0, 0, 8), counted({3})}, "a"),
        b({whole.narrow(0, by, 8), counted({3})}, "b") {}
  Tensor whole;
  TensorList a;
  TensorList b;
};

World shifted(std::int64_t by,
              std::function<void(const TensorList&, const TensorList&)> body) {
  auto lists = std::make_shared<Shifted>(by);
  return {[=] { body(lists->a, lists->b); },
          {lists->whole, lists->a[1], lists->b[1]},
          lists};
}

std::vector<Pattern> optimizer_patterns() {
  return {
      {"a second optimizer over some parameters", 1,
       [] {
         const auto all = counted_params(4);
         return two_optimizers<SGD, SGD>(all, {all[1], all[3]}, {.lr = 0.1},
                                         {.lr = 0.2, .momentum = 0.9});
       }},
      {"Adam after Adam over one of them", 1,
       [] {
         const auto all = counted_params(3);
         return two_optimizers<Adam, Adam>(all, {all[2]}, {.lr = 0.1},
                                           {.lr = 0.2, .weight_decay = 0.1});
       }},
      {"what the second computes first is carried over the cut", 1,
       [] {
         const auto all = counted_params(3);
         return two_optimizers<SGD, Adam>(
             all, {all[0]}, {.lr = 0.1},
             {.lr = 0.2, .weight_decay = 0.1, .maximize = true});
       }},
      {"two optimizers over the very same parameters", 0,
       [] {
         const auto all = counted_params(3);
         return two_optimizers<SGD, Adam>(all, all, {.lr = 0.1}, {.lr = 0.2});
       }},
      {"two optimizers over different parameters", 0,
       [] {
         const auto all = counted_params(4);
         return two_optimizers<SGD, SGD>({all[0], all[1]}, {all[2], all[3]},
                                         {.lr = 0.1}, {.lr = 0.2});
       }},
      {"one layer is clamped after the step", 1,
       [] {
         const auto all = counted_params(3);
         auto adam = std::make_shared<Adam>(all, AdamOptions{.lr = 0.1});
         const TensorList layer({all[1]}, "layer");
         return World{[=] {
                        adam->step();
                        foreach_clamp_(layer, 0.2, 0.6);
                      },
                      all, adam};
       }},
      {"an average over some parameters after the step", 1,
       [] {
         auto all = counted_params(3);
         auto adam = std::make_shared<Adam>(all, AdamOptions{.lr = 0.1});
         const TensorList some({all[0], all[2]}, "some");
         const TensorList average({all[0].clone(), all[2].clone()}, "average");
         World world{[=] {
                       adam->step();
                       foreach_lerp_(average, some, 0.25);
                     },
                     all, adam};
         world.watched.push_back(average[0]);
         world.watched.push_back(average[1]);
         return world;
       }},
      {"a parameter is its own gradient", 0,
       [] {
         auto all = counted_params(1);
         all[0].set_grad(all[0]);
         auto adam = std::make_shared<AdamW>(all, AdamWOptions{.lr = 0.1});
         return World{[=] { adam->step(); }, all, adam};
       }},
      {"one of two is its own gradient, and decays first", 1,
       [] {
         auto all = counted_params(2);
         all[0].set_grad(all[0]);
         auto adam = std::make_shared<AdamW>(all, AdamWOptions{.lr = 0.1});
         return World{[=] { adam->step(); }, all, adam};
       }},
  };
}

std::vector<Pattern> list_patterns() {
  return {
      {"stored twice", 1,
       [] {
         return shifted(5, [](const auto& a, const auto& b) {
           foreach_mul_(a, 2.0);
           foreach_mul_(b, 3.0);
         });
       }},
      {"read after it was stored", 1,
       [] {
         auto lists = std::make_shared<Shifted>(5);
         const TensorList sum({zeros({8}), zeros({3})}, "sum");
         return World{[=] {
                        foreach_mul_(lists->a, 2.0);
                        foreach_add_(sum, lists->b);
                      },
                      {lists->whole, lists->a[1], sum[0], sum[1]},
                      lists};
       }},
      {"stored after it was read", 1,
       [] {
         auto lists = std::make_shared<Shifted>(5);
         const TensorList sum({zeros({8}), zeros({3})}, "sum");
         return World{[=] {
                        foreach_add_(sum, lists->b);
                        foreach_mul_(lists->a, 2.0);
                      },
                      {lists->whole, lists->a[1], sum[0], sum[1]},
                      lists};
       }},
      {"neighbours", 0,
       [] {
         return shifted(8, [](const auto& a, const auto& b) {
           foreach_mul_(a, 2.0);
           foreach_mul_(b, 3.0);
           foreach_add_(a, b);
         });
       }},
      {"each other's values in turn", 5,
       [] {
         return shifted(3, [](const auto& a, const auto& b) {
           for (int i = 0; i < 3; ++i) {
             foreach_mul_(a, 0.5);
             foreach_add_(b, 1.0);
           }
         });
       }},
      {"a value from before the cut is used behind it", 1,
       [] {
         return shifted(5, [](const auto& a, const auto& b) {
           const TensorList sum = foreach_add(foreach_mul(a, 0.5), 1.0);
           foreach_mul_(a, 3.0);
           foreach_add_(b, sum);
         });
       }},
      {"a list is read, stored over and read again", 2,
       [] {
         auto lists = std::make_shared<Shifted>(5);
         const TensorList result({zeros({8}), zeros({3})}, "result");
         return World{[=] {
                        const TensorList before = foreach_mul(lists->b, 2.0);
                        foreach_mul_(lists->a, 3.0);
                        const TensorList after = foreach_mul(lists->b, 2.0);
                        foreach_sub_(result, before);
                        foreach_add_(result, after);
                      },
                      {lists->whole, result[0], result[1]},
                      lists};
       }},
      {"numbers that the recording computes cross the cut", 1,
       [] {
         auto lists = std::make_shared<Shifted>(5);
         const Tensor rate = tensor(0.25);
         return World{[=] {
                        const Scalar factor = 1.0 - Scalar(rate) * 0.5;
                        foreach_mul_(lists->a, factor);
                        foreach_mul_(lists->b, factor);
                      },
                      {lists->whole},
                      lists};
       }},
      {"lists of per-tensor numbers share some", 2,
       [] {
         const std::vector<Tensor> steps = scalars(3);
         const auto all = TensorList::per_tensor(steps, "all");
         const auto some = TensorList::per_tensor({steps[2], steps[0]}, "some");
         const TensorList params({counted({4}), counted({5})}, "params");
         return World{[=] {
                        foreach_add_(all, 1.0);
                        foreach_mul_(params, foreach_add(some, 0.5));
                        foreach_add_(all, 1.0);
                      },
                      {steps[0], steps[1], steps[2], params[0], params[1]},
                      nullptr};
       }},
      {"slices that cross", 1,
       [] {
         const Tensor m = counted({6, 8});
         const TensorList even({m.slice(1, 0, 8, 2)}, "even");
         const TensorList low({m.narrow(1, 0, 4)}, "low");
         return World{[=] {
                        foreach_mul_(even, 2.0);
                        foreach_add_(low, 1.0);
                      },
                      {m},
                      nullptr};
       }},
      {"slices that do not", 0,
       [] {
         const Tensor m = counted({6, 8});
         const TensorList even({m.slice(1, 0, 8, 2)}, "even");
         const TensorList odd({m.slice(1, 1, 8, 2)}, "odd");
         return World{[=] {
                        foreach_mul_(even, 2.0);
                        foreach_add_(odd, even);
                      },
                      {m},
                      nullptr};
       }},
      {"lists of other shapes meet in one list of numbers", 1,
       [] {
         const auto steps =
             TensorList::per_tensor({tensor(2.0), tensor(3.0)}, "steps");
         const TensorList a({counted({4}), counted({2, 3})}, "a");
         const TensorList b({counted({5}), counted({2})}, "b");
         return World{[=] {
                        foreach_mul_(a, steps);
                        foreach_mul_(b, steps);
                        foreach_add_(b, 1.0);
                      },
                      {a[0], a[1], b[0], b[1]},
                      nullptr};
       }},
      {"strided lists of other shapes meet there", 1,
       [] {
         const auto steps = TensorList::per_tensor({tensor(2.0)}, "steps");
         const Tensor m = counted({4, 6});
         const Tensor n = counted({8, 3});
         const TensorList a({m.t()}, "a");
         const TensorList b({n.t()}, "b");
         return World{[=] {
                        foreach_mul_(a, steps);
                        foreach_mul_(b, steps);
                      },
                      {m, n},
                      nullptr};
       }},
      {"one memory in two shapes", 1,
       [] {
         const Tensor m = counted({4, 6});
         const Tensor x = counted({6, 4});
         const Tensor y = counted({2, 12});
         const TensorList four({m}, "four");
         const TensorList two({m.view({12, 2})}, "two");
         const TensorList other({x.t()}, "other");
         const TensorList another({y.t()}, "another");
         return World{[=] {
                        foreach_add_(four, other);
                        foreach_mul_(two, another);
                      },
                      {m, x, y},
                      nullptr};
       }},
      {"a list read twice, of which another one is a part", 1,
       [] {
         const Tensor x = counted({5});
         const Tensor y = counted({3});
         const Tensor z = counted({5});
         const TensorList both({x, y}, "both");
         const TensorList first({x}, "first");
         const TensorList sum({z}, "sum");
         return World{[=] {
                        foreach_add_(sum, first);
                        foreach_mul_(both, 2.0);
                        foreach_add_(sum, 1.0);
                      },
                      {x, y, z},
                      nullptr};
       }},
      {"a copy that another replaces after the cut", 1,
       [] {
         auto lists = std::make_shared<Shifted>(5);
         const Tensor x = counted({8}, 30);
         const Tensor y = counted({3}, 40);
         const TensorList to({x, y}, "to");
         const TensorList from({x, counted({3}, 50)}, "from");
         return World{[=] {
                        foreach_copy_(to, lists->a);
                        foreach_mul_(lists->b, 2.0);
                        foreach_copy_(to, from);
                      },
                      {lists->whole, x, y},
                      lists};
       }},
      {"a call of foreach_map is not torn apart", 1,
       [] {
         auto lists = std::make_shared<Shifted>(5);
         const TensorList sum({zeros({8}), zeros({3})}, "sum");
         return World{[=] {
                        foreach_mul_(lists->a, 2.0);
                        foreach_map_(
                            [](auto s, auto x) { return s * 0.5 + x * x; }, sum,
                            lists->b);
                      },
                      {lists->whole, sum[0], sum[1]},
                      lists};
       }},
  };
}

std::vector<Pattern> patterns() {
  std::vector<Pattern> all = optimizer_patterns();
  for (Pattern& each : list_patterns()) all.push_back(std::move(each));
  return all;
}

void check_pattern(const Pattern& pattern, Backend backend) {
  CAPTURE(pattern.name);
  CAPTURE(int(backend));
  const World mine = pattern.make();
  const World twin = pattern.make();
  auto step = compile([&] { mine.body(); }, {.backend = backend});
  std::int64_t compilations = 0;
  std::int64_t uploads = 0;
  for (int call = 1; call <= 5; ++call) {
    step();
    twin.body();
    REQUIRE(same_bits(mine.watched, twin.watched));
    CHECK(step.counters().graph_breaks == call * pattern.breaks);
    CHECK(step.counters().launches == call * (pattern.breaks + 1));
    CHECK(step.counters().recompiles == 0);
    if (call == 1) compilations = step.counters().compilations;
    CHECK(step.counters().compilations == compilations);
    if (call == 3) uploads = step.counters().uploads;
  }
  CHECK(compilations <= pattern.breaks + 1);
  CHECK(step.counters().uploads == uploads);
}

}  // namespace

TEST_CASE("what shares memory has the bits of eager mode, cut where needed") {
  for (const Pattern& pattern : patterns()) {
    for (const Backend backend :
         {Backend::compiled, Backend::interpreted, Backend::simulated}) {
      check_pattern(pattern, backend);
    }
  }
}

TEST_CASE("under fullgraph a cut is an error, and nothing is stored") {
  for (const Pattern& pattern : patterns()) {
    CAPTURE(pattern.name);
    const World world = pattern.make();
    const auto before = copies(world.watched);
    auto step = compile([&] { world.body(); },
                        {.fullgraph = true, .backend = Backend::interpreted});
    if (pattern.breaks == 0) {
      step();
      continue;
    }
    for (int call = 0; call < 2; ++call) {
      const std::string message = message_of<Error>([&] { step(); });
      CHECK(contains(message, "graph break in function step ("));
      CHECK(contains(message, "compile without fullgraph"));
    }
    CHECK(same_bits(world.watched, before));
    CHECK(step.counters().launches == 0);
    CHECK(step.counters().graph_breaks == 0);
  }
}

TEST_CASE("a cut is logged and reported with both places") {
  LogCapture log(Log::graph);
  const Shifted lists(5);
  const int line = __LINE__ + 2;
  auto step = compile([&] {
    foreach_mul_(lists.a, 2.0);
    foreach_mul_(lists.b, 3.0);
  });
  step();
  const auto at = [&](int number) {
    return std::string(__FILE__) + ":" + std::to_string(number);
  };
  const std::string text = "b[0] is read at " + at(line + 1) +
                           " and overlaps a[0], stored at " + at(line);
  const std::string logged = log.take();
  INFO(logged);
  CHECK(contains(logged, "graph break in function step: " + text));
  const std::string report = step.report();
  INFO(report);
  CHECK(contains(report, "graph break: " + text + "\n"));
  CHECK(report.find("launch 1:") < report.find("graph break:"));
  CHECK(report.find("graph break:") < report.find("launch 2:"));
  step();
  CHECK(contains(step.report(), "graph break: " + text + "\n"));
  // Values: [0, 8) twice, [5, 13) three times, both in between.
  const std::vector<double> before = counted({20}).to_vector();
  const std::vector<double> after = lists.whole.to_vector();
  for (std::size_t i = 0; i < 20; ++i) {
    const double factor = (i < 8 ? 4 : 1) * (i >= 5 && i < 13 ? 9 : 1);
    CHECK(after[i] == doctest::Approx(before[i] * factor).epsilon(1e-6));
  }
}

TEST_CASE("within one operation there is no order: an error in every mode") {
  const Shifted lists(5);
  const auto before = copies({lists.whole, lists.a[1], lists.b[1]});
  const auto check = [&](const std::function<void()>& body) {
    std::vector<std::string> messages = {message_of<Error>(body)};
    for (const Backend backend :
         {Backend::compiled, Backend::interpreted, Backend::simulated}) {
      auto step = compile(
          [&] {
            foreach_mul_(TensorList({lists.a[1]}), 5.0);  // in order
            body();
          },
          {.backend = backend});
      messages.push_back(message_of<Error>([&] { step(); }));
      CHECK(step.counters().launches == 0);
    }
    for (const std::string& message : messages) {
      CHECK(contains(message, "is stored but overlaps "));
    }
    CHECK(same_bits({lists.whole, lists.a[1], lists.b[1]}, before));
  };
  check([&] { foreach_add_(lists.a, lists.b); });
  check([&] { foreach_addcmul_(lists.b, lists.a, lists.a, 1.0); });
  check([&] {
    foreach_map_([](auto x, auto y) { return x + y; }, lists.a, lists.b);
  });
  check([&] {
    foreach_map_([](auto x, auto y) { return std::pair(x * 2, y * 3); },
                 into(lists.a, lists.b));
  });
  check([&] {
    const Tensor twice = lists.whole.narrow(0, 0, 2);
    foreach_mul_(TensorList({twice, twice}), 2.0);
  });
}

TEST_CASE("what is in order before an error in one operation is not stored") {
  const Shifted lists(5);
  const auto before = copies({lists.whole});
  auto step = compile([&] {
    foreach_mul_(lists.a, 2.0);
    foreach_mul_(lists.b, 2.0);
    foreach_add_(lists.a, lists.b);
  });
  CHECK(contains(message_of<Error>([&] { step(); }), "overlaps"));
  CHECK(same_bits({lists.whole}, before));
  CHECK(step.counters().launches == 0);
}

TEST_CASE("a compiler that fails fails before the first part is stored") {
  const Shifted lists(5);
  const auto before = copies({lists.whole});
  auto step = compile([&] {
    foreach_mul_(lists.a, 2.0);
    foreach_div_(lists.b, 3.0);
  });
  {
    const jit_testing::Env compiler("FUSEBOOK_CXX", "/bin/false");
    CHECK_THROWS_AS(step(), Error);
  }
  CHECK(same_bits({lists.whole}, before));
  CHECK(step.counters().launches == 0);
  step();
  CHECK(step.counters().launches == 2);
}

TEST_CASE("numbers that move over the cut recompile as ever") {
  const Shifted lists(5);
  const Shifted twin(5);
  double factor = 0.5;
  const auto body = [&](const Shifted& on) {
    foreach_mul_(on.a, factor);
    foreach_add_(on.b, factor);
  };
  auto step = compile([&] { body(lists); });
  for (int call = 0; call < 6; ++call) {
    factor += 0.125;
    step();
    body(twin);
    REQUIRE(same_bits({lists.whole}, {twin.whole}));
  }
  CHECK(step.counters().launches == 12);
  CHECK(step.counters().compilations == 4);  // two places, promoted once each
}

TEST_CASE("lists that begin to share memory are cut from then on") {
  const Tensor whole = counted({20});
  const Tensor twin = counted({20});
  std::int64_t at = 10;
  const auto body = [&](const Tensor& memory) {
    foreach_mul_(TensorList({memory.narrow(0, 0, 8)}, "a"), 2.0);
    foreach_add_(TensorList({memory.narrow(0, at, 8)}, "b"), 1.0);
  };
  auto step = compile([&] { body(whole); });
  std::int64_t breaks = 0;
  for (const std::int64_t next : {10, 9, 5, 5, 12, 3, 10, 5}) {
    at = next;
    step();
    body(twin);
    REQUIRE(same_bits({whole}, {twin}));
    breaks += next < 8 ? 1 : 0;
    CHECK(step.counters().graph_breaks == breaks);
  }
  // The parts run on the kernel that was made for both.
  CHECK(step.counters().compilations == 1);
}

TEST_CASE("new gradients in every step do not undo what is known of a cut") {
  const auto all = counted_params(3);
  const auto twins = copies(all);
  World mine = two_optimizers<Adam, SGD>(all, {all[1]}, {.lr = 0.1},
                                         {.lr = 0.2, .momentum = 0.9});
  World other = two_optimizers<Adam, SGD>(twins, {twins[1]}, {.lr = 0.1},
                                          {.lr = 0.2, .momentum = 0.9});
  auto step = compile([&] { mine.body(); });
  for (int call = 1; call <= 6; ++call) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      Tensor(all[i]).set_grad(counted(all[i].shape(), call));
      Tensor(twins[i]).set_grad(counted(all[i].shape(), call));
    }
    step();
    other.body();
    REQUIRE(same_bits(all, twins));
    CHECK(step.counters().graph_breaks == call);
    CHECK(step.counters().launches == 2 * call);
  }
  CHECK(step.counters().compilations == 2);
  // A gradient that lies in a parameter is another matter.
  Tensor(all[0]).set_grad(all[0]);
  Tensor(twins[0]).set_grad(twins[0]);
  step();
  other.body();
  CHECK(same_bits(all, twins));
}

TEST_CASE("a cut in each segment between graph breaks") {
  const Shifted lists(5);
  const Shifted twin(5);
  const auto body = [](const Shifted& on) {
    for (int i = 0; i < 2; ++i) {
      foreach_mul_(on.a, 0.5);
      foreach_add_(on.b, 1.0);
      static_cast<void>(on.whole.to_vector());
    }
  };
  auto step = compile([&] { body(lists); });
  for (int call = 1; call <= 2; ++call) {
    step();
    body(twin);
    REQUIRE(same_bits({lists.whole}, {twin.whole}));
    CHECK(step.counters().graph_breaks == 4 * call);
    CHECK(step.counters().launches == 4 * call);
    CHECK(step.counters().recompiles == 0);
  }
}
