#include "fusebook/trace/recorder.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/nn/model.h"
#include "fusebook/optim/adam.h"
#include "fusebook/reports/counters.h"
#include "fusebook/support/error.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;

namespace {

std::vector<Tensor> filled(double value, std::size_t count = 2) {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < count; ++i) {
    tensors.push_back(full({std::int64_t(i) + 3}, value));
  }
  return tensors;
}

bool all_equal(const std::vector<Tensor>& tensors, double value) {
  for (const Tensor& tensor : tensors) {
    for (const double element : tensor.to_vector()) {
      if (element != value) return false;
    }
  }
  return true;
}

// A way to look at the first of the tensors of a list while it is recorded.
struct Access {
  const char* name;
  double (*read)(const Tensor& tensor);
};

const std::vector<Access>& accesses() {
  static const std::vector<Access> all = {
      {"data()", [](const Tensor& t) { return double(t.data<float>()[0]); }},
      {"to_vector()", [](const Tensor& t) { return t.to_vector()[0]; }},
      {"clone()", [](const Tensor& t) { return t.clone().to_vector()[0]; }},
      {"sum()", [](const Tensor& t) { return t.sum().item() / 3; }},
      {"copy_()",
       [](const Tensor& t) {
         Tensor copy = empty(t.shape());
         copy.copy_(t);
         return copy.to_vector()[0];
       }},
      {"bitwise_equal()",
       [](const Tensor& t) {
         return bitwise_equal(t, full(t.shape(), 3)) ? 3.0 : 0.0;
       }},
      {"to_string()",
       [](const Tensor& t) {
         return to_string(t) == "tensor([3., 3., 3.])" ? 3.0 : 0.0;
       }},
  };
  return all;
}

}  // namespace

// ---- breaks -----------------------------------------------------------------

TEST_CASE("reading a value that is not computed yet computes it") {
  for (const Access& access : accesses()) {
    CAPTURE(access.name);
    const auto list = filled(1);
    double seen = 0;
    auto step = compile([&] {
      foreach_add_(list, 2.0);
      seen = access.read(list[0]);
      foreach_mul_(list, 10.0);
    });
    step();
    CHECK(seen == 3);
    CHECK(all_equal(list, 30));
    CHECK(step.counters().graph_breaks == 1);
    CHECK(step.counters().launches == 2);
  }
}

TEST_CASE("so does a list that has no memory yet") {
  const auto list = filled(1);
  double seen = 0;
  auto step = compile([&] {
    const TensorList sum = foreach_add(list, 2.0);
    seen = sum[0].to_vector()[0];
    foreach_copy_(list, sum);
  });
  step();
  CHECK(seen == 3);
  CHECK(all_equal(list, 3));
  CHECK(step.counters().graph_breaks == 1);
  CHECK(step.counters().launches == 2);
}

TEST_CASE("item() of a number that is being recorded") {
  const std::vector<Tensor> numbers = {tensor(1), tensor(2)};
  double seen = 0;
  auto step = compile([&] {
    foreach_mul_(numbers, 5.0);
    seen = numbers[1].item();
  });
  step();
  CHECK(seen == 10);
  CHECK(step.counters().graph_breaks == 1);
  CHECK(step.counters().launches == 1);
}

TEST_CASE("a break is an error under fullgraph, and nothing is stored") {
  for (const Access& access : accesses()) {
    CAPTURE(access.name);
    const auto list = filled(1);
    int inside = 0;
    const int line = __LINE__ + 1;
    auto step = compile(
        [&] {
          inside = __LINE__ + 1;
          foreach_add_(list, 2.0);
          access.read(list[0]);
        },
        {.name = "train", .fullgraph = true});
    const std::string message = testing::message_of<Error>([&] { step(); });
    CHECK(testing::contains(message, "graph break in function train (" +
                                         std::string(__FILE__) + ":" +
                                         std::to_string(line) + ")"));
    CHECK(testing::contains(message, "a tensor is read before it is computed"));
    CHECK(testing::contains(
        message, __FILE__ + std::string(":") + std::to_string(inside)));
    CHECK(testing::contains(message, "without fullgraph"));
    CHECK(step.counters().graph_breaks == 0);
    CHECK(all_equal(list, 1));
  }
}

TEST_CASE("what is only read by the recording can be read by all") {
  const auto params = make_params(mixed_shapes(4), 1);
  Adam adam(params);
  double seen = 0;
  auto step = compile(
      [&] {
        adam.step();
        seen = params[0].grad().to_vector()[0];
      },
      {.fullgraph = true});
  const double grad = params[0].grad().to_vector()[0];
  step();
  CHECK(seen == grad);
  CHECK(step.counters().graph_breaks == 0);
  CHECK(step.counters().launches == 1);
}

TEST_CASE("what the recording reads is read before somebody changes it") {
  const auto target = filled(0);
  const auto source = filled(2);
  auto step = compile([&] {
    foreach_add_(target, source);
    Tensor changed = source[1];
    changed.fill_(50);
    foreach_add_(target, source);
  });
  step();
  CHECK(all_equal({target[0]}, 4));
  CHECK(all_equal({target[1]}, 52));
  CHECK(step.counters().graph_breaks == 1);

  // data() of a tensor that is not const may write too.
  auto by_pointer = compile([&] {
    foreach_copy_(target, source);
    Tensor changed = source[0];
    changed.data<float>()[0] = 9;
  });
  by_pointer();
  CHECK(all_equal({target[0]}, 2));
  CHECK(by_pointer.counters().graph_breaks == 1);
}

TEST_CASE("touching other tensors breaks nothing") {
  const auto list = filled(1);
  Tensor other = full({3}, 1);
  auto step = compile(
      [&] {
        foreach_add_(list, 1.0);
        other.fill_(other.to_vector()[0] + 1);
      },
      {.fullgraph = true});
  step();
  step();
  CHECK(other.to_vector()[0] == 3);
  CHECK(all_equal(list, 3));
}

TEST_CASE("memory counts, not the handle") {
  const auto list = filled(1);
  Tensor handle = list[0];
  const Tensor part = from_blob(handle.data<float>() + 1, {1});
  double seen = 0;
  auto step = compile([&] {
    foreach_add_(list, 2.0);
    seen = part.item();
  });
  step();
  CHECK(seen == 3);
  CHECK(step.counters().graph_breaks == 1);
}

TEST_CASE("a break is logged with the operation it follows") {
  LogCapture log(Log::graph);
  const auto list = filled(1);
  const int line = __LINE__ + 2;
  auto step = compile([&] {
    foreach_add_(list, 2.0);
    static_cast<void>(list[0].to_vector());
  });
  step();
  CHECK(testing::contains(
      log.take(),
      "[graph] graph break in function step: a tensor is read before it is "
      "computed, after the operation at " +
          std::string(__FILE__) + ":" + std::to_string(line) + "\n"));
}

TEST_CASE("the segments around a break are no recompiles of each other") {
  LogCapture log(Log::recompiles);
  const auto list = filled(1);
  double factor = 2;
  auto step = compile([&] {
    foreach_add_(list, 1.0);
    static_cast<void>(list[0].to_vector());
    foreach_mul_(list, factor);
    static_cast<void>(list[0].to_vector());
    foreach_sub_(list, 1.0);
  });
  step();
  step();
  CHECK(all_equal(list, 7));
  CHECK(step.counters().compilations == 3);
  CHECK(step.counters().recompiles == 0);
  CHECK(step.counters().graph_breaks == 4);
  CHECK(log.take().empty());
  factor = 3;
  step();
  factor = 4;
  step();
  CHECK(all_equal(list, (8 * 3 - 1 + 1) * 4 - 1));
  CHECK(step.counters().compilations == 4);
  CHECK(step.counters().recompiles == 1);
  CHECK(jit_testing::count_of(log.take(), "Recompiling") == 1);
}

TEST_CASE("forward and backward inside see what came before them") {
  Generator generator(1);
  Sequential model = linear_stack(2, 8, generator);
  Sequential twin = model.clone();
  const Tensor input = rand({8}, generator);
  Adam adam(model.parameters(), {.lr = 0.1});
  Adam eager(twin.parameters(), {.lr = 0.1});
  const auto train = [&input](const Sequential& net, Adam& optimizer) {
    optimizer.zero_grad();
    net(input).sum().backward();
    optimizer.step();
  };
  auto step = compile([&] {
    train(model, adam);
    train(model, adam);
  });
  for (int i = 0; i < 2; ++i) {
    step();
    train(twin, eager);
    train(twin, eager);
  }
  CHECK(same_bits(model.parameters(), twin.parameters()));
  CHECK(step.counters().graph_breaks == 2);
  CHECK(step.counters().launches == 4);
}

// ---- numbers ----------------------------------------------------------------

TEST_CASE("a 0-d tensor is read when it is used, not when the step runs") {
  const auto list = filled(0);
  Tensor rate = tensor(2);
  auto step = compile(
      [&] {
        foreach_add_(list, rate);
        rate.fill_(100);
        foreach_add_(list, rate);
        rate.fill_(2);
      },
      {.fullgraph = true});
  step();
  CHECK(all_equal(list, 102));
  step();
  CHECK(all_equal(list, 204));
  CHECK(step.counters().compilations == 1);
  CHECK(step.counters().launches == 2);
}

TEST_CASE("a rate that a scheduler moves after the step is not seen by it") {
  for (const bool is_tensor : {false, true}) {
    const auto params = make_params(mixed_shapes(4), 1);
    const auto twins = copies(params);
    AdamOptions options;
    options.lr = is_tensor ? Scalar(tensor(0.5)) : Scalar(0.5);
    Adam adam(params, options);
    Adam eager(twins, {.lr = 0.5});
    double next = 0.5;
    auto step = compile(
        [&] {
          adam.step();
          next /= 2;
          adam.param_groups[0]["lr"].assign(next);
        },
        {.fullgraph = true});
    for (const double rate : {0.5, 0.25, 0.125}) {
      step();
      eager.param_groups[0]["lr"] = rate;
      eager.step();
      CHECK(same_bits(params, twins));
    }
    CHECK(step.counters().launches == 3);
    CHECK(step.counters().compilations == (is_tensor ? 1 : 2));
  }
}

TEST_CASE("a rate that the recording computes is computed when it is read") {
  const auto list = filled(0);
  const std::vector<Tensor> rates = {tensor(2)};
  auto step = compile([&] {
    foreach_mul_(rates, 3.0);
    foreach_add_(list, rates[0]);
  });
  step();
  CHECK(all_equal(list, 6));
  CHECK(step.counters().graph_breaks == 1);
  CHECK(rates[0].item() == 6);
}

TEST_CASE("arithmetic on numbers survives a break") {
  const auto list = filled(1);
  auto step = compile([&] {
    const Scalar six = Scalar(2.0) * Scalar(3.0);
    foreach_add_(list, six);
    static_cast<void>(list[0].to_vector());
    foreach_add_(list, six + 1.0);
  });
  step();
  step();
  CHECK(all_equal(list, 27));
  CHECK(step.counters().compilations == 2);
}

// ---- lists without memory ---------------------------------------------------

TEST_CASE("a list that leaves the function is computed, others cost nothing") {
  const auto source = filled(3);
  const auto target = filled(0);
  const std::int64_t elements = 3 + 4;
  TensorList kept;
  auto step = compile([&](bool keep) {
    const TensorList twice = foreach_mul(source, 2.0);
    const TensorList more = foreach_add(twice, 1.0);
    foreach_copy_(target, more);
    if (keep) kept = twice;
  });
  step(false);
  CHECK(all_equal(target, 7));
  CHECK(step.counters().bytes_moved == elements * 8);
  step(true);
  CHECK(all_equal(kept.tensors(), 6));
  CHECK(step.counters().bytes_moved == elements * (8 + 12));
  CHECK(step.counters().launches == 2);

  // It is a list like any other from now on, with memory of its own.
  const TensorList first = kept;
  step(true);
  CHECK(all_equal(first.tensors(), 6));
  CHECK(kept[0].raw_data() != first[0].raw_data());
  CHECK(kept[1].shape() == Shape{4});
  foreach_add_(kept, source);
  CHECK(all_equal(kept.tensors(), 9));
  CHECK(all_equal(first.tensors(), 6));
}

TEST_CASE("a list can be changed in place before it has memory") {
  const auto source = filled(3);
  TensorList kept;
  auto step = compile([&] {
    kept = foreach_mul(source, 2.0);
    foreach_add_(kept, 1.0);
    foreach_addcdiv_(kept, source, source, 0.5);
  });
  step();
  CHECK(all_equal(kept.tensors(), 7.5));
  CHECK(all_equal(source, 3));
  CHECK(step.counters().bytes_moved == 7 * 8);
}

TEST_CASE("results keep the value they had when they were recorded") {
  const auto list = filled(1);
  TensorList before;
  TensorList after;
  auto step = compile([&] {
    before = foreach_copy(list);
    foreach_add_(list, 1.0);
    after = foreach_copy(list);
    foreach_mul_(list, 10.0);
  });
  step();
  CHECK(all_equal(before.tensors(), 1));
  CHECK(all_equal(after.tensors(), 2));
  CHECK(all_equal(list, 20));
  CHECK(step.counters().launches == 1);
}

TEST_CASE("a number for each tensor is a list too, in float64") {
  const std::vector<Tensor> steps = scalars(2);
  const TensorList counts = TensorList::per_tensor(steps, "steps");
  const auto list = filled(0);
  TensorList halves;
  auto step = compile([&] {
    foreach_add_(counts, 1.0);
    halves = foreach_div(counts, 2.0);
    foreach_add_(list, halves);
  });
  step();
  step();
  CHECK(steps[1].item() == 2);
  CHECK(halves[0].item() == 1);
  CHECK(halves[0].dtype() == DType::float64);
  CHECK(all_equal(list, 1.5));
  CHECK(testing::contains(
      testing::message_of<Error>([&] { foreach_copy_(counts, list); }),
      "elements cannot be stored into a list of per-tensor scalars"));
}

TEST_CASE("an operation without a list is an error with its place") {
  const int line = __LINE__ + 2;
  const std::string message = testing::message_of<Error>(
      [] { static_cast<void>(foreach_add(1.0, 2.0)); });
  CHECK(message == "foreach_add: no operand is a list of tensors, at " +
                       std::string(__FILE__) + ":" + std::to_string(line));
}

TEST_CASE("a scalar may stand on either side") {
  const auto list = filled(3);
  auto step = compile([&] { foreach_copy_(list, foreach_sub(10.0, list)); });
  step();
  CHECK(all_equal(list, 7));
  const TensorList eager = foreach_div(14.0, list);
  CHECK(all_equal(eager.tensors(), 2));
}
