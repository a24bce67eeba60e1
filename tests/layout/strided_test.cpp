// Optimizers and list operations on views: tensors that lie in another order,
// or between others.
#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fusebook/checkpoint/checkpoint.h"
#include "fusebook/compile/compile.h"
#include "fusebook/cpu/traffic.h"
#include "fusebook/device/allocator.h"
#include "fusebook/foreach/foreach_map.h"
#include "fusebook/nn/model.h"
#include "fusebook/optim/all.h"
#include "fusebook/programs/launch_trace.h"
#include "fusebook/runtime/parallel.h"
#include "support/optimizer_rules.h"
#include "support/step_testing.h"
#include "support/strided_testing.h"

using namespace fuse;
using namespace step_testing;
using testing::contains;
using testing::Lie;
using testing::Placement;
using testing::Random;

namespace {

ParamStates states_of(const Optimizer& opt, std::size_t param) {
  return opt.states(opt.group(0).params[param]);
}

constexpr double between = 0x1.8p-77;  // what lies between the elements

/// Tensors inside of larger blocks.
class Views {
 public:
  void add(const Shape& shape, Lie lie, Random& random) {
    places_.emplace_back(shape, lie, random);
    blocks_.push_back(full({std::int64_t(places_.back().room())}, between));
    tensors_.push_back(
        places_.back().tensor(blocks_.back().raw_data(), DType::float32));
    std::int64_t numel = 1;
    for (const std::int64_t size : shape) numel *= size;
    auto* const data = static_cast<float*>(blocks_.back().raw_data());
    for (std::size_t i = 0; i < std::size_t(numel); ++i) {
      data[places_.back().at(i)] = float(random.uniform(0.25, 1));
    }
  }
  const std::vector<Tensor>& tensors() const { return tensors_; }

  /// True when all that is no element is what it was.
  bool rest_holds() const {
    for (std::size_t k = 0; k < blocks_.size(); ++k) {
      std::vector<double> all = blocks_[k].to_vector();
      for (std::size_t i = 0; i < std::size_t(tensors_[k].numel()); ++i) {
        all[places_[k].at(i)] = between;
      }
      for (const double x : all) {
        if (x != between) return false;
      }
    }
    return true;
  }

 private:
  std::vector<Placement> places_;
  std::vector<Tensor> blocks_;
  std::vector<Tensor> tensors_;
};

const std::vector<std::pair<Shape, Lie>>& zoo() {
  static const std::vector<std::pair<Shape, Lie>> all = {
      {{300, 70}, Lie::transposed},
      {{90, 200}, Lie::stepped},
      {{4, 5, 6, 7}, Lie::transposed},
      {{200, 40}, Lie::narrowed},
      {{50}, Lie::stepped},
      {{64}, Lie::contiguous},
      {{3, 0, 2}, Lie::stepped},
      {{}, Lie::contiguous},
      {{1000, 2}, Lie::narrowed},
      {{1, 1}, Lie::stepped}};
  return all;
}

/// Parameters and gradients that lie each in a way of its own.
struct Problem {
  explicit Problem(std::uint64_t seed) {
    Random random(seed);
    for (const auto& [shape, lie] : zoo()) params.add(shape, lie, random);
    for (const auto& [shape, lie] : zoo()) {
      const bool same = random.chance(0.3);
      grads.add(shape, same ? lie : Lie(random.below(4)), random);
    }
    for (std::size_t k = 0; k < zoo().size(); ++k) {
      Tensor(params.tensors()[k]).set_grad(grads.tensors()[k]);
    }
  }
  /// The same numbers in tensors of their own, side by side.
  std::vector<Tensor> contiguous() const {
    std::vector<Tensor> all;
    for (const Tensor& param : params.tensors()) {
      Tensor copy = empty(param.shape());
      copy.copy_(param);
      Tensor grad = empty(param.shape());
      grad.copy_(param.grad());
      copy.set_grad(grad);
      all.push_back(copy);
    }
    return all;
  }
  bool rest_holds() const { return params.rest_holds() && grads.rest_holds(); }

  Views params;
  Views grads;
};

template <class Opt, class Options>
void check_optimizer(const Options& options) {
  constexpr int steps = 3;
  const Problem reference(1);
  const std::vector<Tensor> wanted = reference.contiguous();
  Opt plain(wanted, options);
  auto plain_step = compile([&] { plain.step(); });
  for (int i = 0; i < steps; ++i) plain_step();
  for (const int threads : {1, 2, 3, 8}) {
    set_thread_count(threads);
    const Problem a(1);
    const Problem b(1);
    const Problem c(1);
    Opt eager(a.params.tensors(), options);
    Opt interpreted(b.params.tensors(), options);
    Opt compiled(c.params.tensors(), options);
    auto by_tiles =
        compile([&] { interpreted.step(); }, {.backend = Backend::interpreted});
    auto step = compile([&] { compiled.step(); }, {.fullgraph = true});
    for (int i = 0; i < steps; ++i) {
      eager.step();
      by_tiles();
      step();
      assert_fused(step);
    }
    CHECK(step.counters().compilations == 1);
    for (const Problem* each : {&a, &b, &c}) {
      REQUIRE(bitwise_equal(each->params.tensors(), wanted));
      REQUIRE(each->rest_holds());
    }
    for (std::size_t k = 0; k < zoo().size(); ++k) {
      // Once per tensor, however many lines it has.
      CHECK(states_of(compiled, k).at("step").item() == steps);
      CHECK(states_of(eager, k).at("step").item() == steps);
      for (const auto& [name, state] : states_of(compiled, k)) {
        CAPTURE(name);
        REQUIRE(bitwise_equal(state, states_of(plain, k).at(name)));
        REQUIRE(bitwise_equal(state, states_of(eager, k).at(name)));
        REQUIRE(bitwise_equal(state, states_of(interpreted, k).at(name)));
      }
    }
  }
  set_thread_count(0);
}

template <class F>
std::string error_of(F f) {
  return testing::message_of<Error>(f);
}

}  // namespace

TEST_CASE("every optimizer has the bits it has on contiguous copies") {
  check_optimizer<Adam>(AdamOptions{.weight_decay = 0.01, .amsgrad = true});
  check_optimizer<AdamW>(AdamWOptions{});
  optimizer_rules::for_each_kind(
      []<class Opt>(const auto& options) { check_optimizer<Opt>(options); });
}

TEST_CASE("Adam on columns of a matrix leaves all others alone") {
  Random random(3);
  const Tensor matrix = random_tensor({100, 60}, random);
  const std::vector<double> before = matrix.to_vector();
  Tensor columns = matrix.slice(1, 3, 60, 4);
  columns.set_grad(full(columns.shape(), 0.5));
  Tensor copy = columns.contiguous();
  copy.set_grad(columns.grad());
  Adam on_view({columns});
  Adam on_copy({copy});
  auto step = compile([&] { on_view.step(); });
  step();
  on_copy.step();
  CHECK(bitwise_equal(columns, copy));
  const std::vector<double> after = matrix.to_vector();
  for (std::size_t i = 0; i < after.size(); ++i) {
    const bool mine = i % 60 >= 3 && (i % 60 - 3) % 4 == 0;
    REQUIRE((after[i] != before[i]) == mine);
  }
}

TEST_CASE("recompiled when the stride class changes, and only then") {
  const Tensor a = zeros({40, 30});
  const Tensor b = zeros({7, 11, 13});
  std::vector<TensorList> strided = {
      TensorList({a.t()}), TensorList({a.slice(1, 0, 30, 2)}),
      TensorList({b.permute({2, 0, 1}), a.narrow(1, 3, 5)}),
      TensorList({b.select(1, 2), a})};
  std::vector<TensorList> contiguous = {TensorList({a}), TensorList({b, a})};
  const TensorList* list = nullptr;
  auto step = compile([&] { foreach_add_(*list, 1.0); });
  for (const TensorList& each : strided) {
    list = &each;
    step();
    CHECK(step.counters().compilations == 1);
  }
  for (const TensorList& each : contiguous) {
    list = &each;
    step();
    CHECK(step.counters().compilations == 2);
  }
  list = strided.data();
  step();
  CHECK(step.counters().compilations == 2);
  CHECK(step.counters().launches == 7);
  CHECK(step.counters().recompiles == 1);
}

TEST_CASE("lists over one memory are one list only if their strides agree") {
  const Tensor m = zeros({6, 6});
  CHECK(TensorList({m.t()}).impl()->id != TensorList({m}).impl()->id);
  const TensorList turned({m.t()});
  CHECK(turned.impl()->id == TensorList({m.t()}).impl()->id);
  const TensorList rows({m.slice(0, 0, 6, 2)});
  const TensorList columns({m.slice(0, 0, 6, 2).t()});
  CHECK(rows.impl()->id != columns.impl()->id);
  const Tensor corner = m.narrow(0, 0, 3).narrow(1, 0, 3);
  const TensorList upright({corner});
  CHECK(upright.impl()->id != TensorList({corner.t()}).impl()->id);
}

TEST_CASE("views made anew in each call are told apart by their strides") {
  const Tensor matrix = zeros({3, 3});
  const Tensor corner = matrix.narrow(0, 0, 2).narrow(1, 0, 2);
  const Tensor values = tensor({1.0, 2.0, 3.0, 4.0}).view({2, 2});
  bool turned = false;
  auto step = compile([&] {
    const Tensor target = turned ? corner.t() : corner;
    foreach_copy_(TensorList({target}), TensorList({values}));
  });
  step();
  step();
  CHECK(step.counters().uploads == 1);
  turned = true;
  step();
  CHECK(corner.to_vector() == std::vector<double>{1, 3, 2, 4});
  CHECK(step.counters().uploads == 2);
  CHECK(step.counters().compilations == 1);
}

TEST_CASE("a step on views copies nothing") {
  const Problem problem(2);
  for (const Backend backend : {Backend::compiled, Backend::interpreted}) {
    Adam adam(problem.params.tensors());
    auto step = compile([&] { adam.step(); }, {.backend = backend});
    step();
    const AllocatorStatistics before = allocator_statistics();
    const std::int64_t bytes = step.counters().bytes_moved;
    const std::int64_t uploads = step.counters().uploads;
    for (int i = 0; i < 3; ++i) step();
    const AllocatorStatistics after = allocator_statistics();
    CHECK(after.system_allocations == before.system_allocations);
    CHECK(after.cache_hits == before.cache_hits);
    CHECK(step.counters().uploads == uploads);
    const std::int64_t elements = total_numel(problem.params.tensors());
    const auto tensors = std::int64_t(zoo().size());
    CHECK(bytes == elements * 7 * 4 + tensors * 16);
    CHECK(step.counters().bytes_moved == 4 * bytes);
  }
}

TEST_CASE("every element is loaded and stored once") {
  for (const int threads : {1, 3}) {
    set_thread_count(threads);
    const Problem problem(2);
    Adam adam(problem.params.tensors());
    auto step =
        compile([&] { adam.step(); }, {.backend = Backend::interpreted});
    step();
    const TrafficCounter counter;
    step();
    for (const Tensor& param : problem.params.tensors()) {
      if (param.numel() == 0) continue;
      const auto moved = counter.tensors().at(param.raw_data());
      CHECK(moved.loads == param.numel());
      CHECK(moved.stores == param.numel());
      const auto grad = counter.tensors().at(param.grad().raw_data());
      CHECK(grad.loads == param.numel());
      CHECK(grad.stores == 0);
    }
  }
  set_thread_count(0);
}

TEST_CASE("new lists keep a dense order") {
  Random random(3);
  const Tensor block = random_tensor({5, 6, 7}, random);
  const std::vector<Tensor> tensors = {block.permute({1, 2, 0}),
                                       block.slice(0, 0, 5, 2), block};
  const auto check = [&](const TensorList& made) {
    CHECK(made[0].strides() == Shape{7, 1, 42});
    CHECK(made[1].strides() == Shape{42, 7, 1});
    CHECK(made[2].strides() == Shape{42, 7, 1});
    for (std::size_t k = 0; k < 3; ++k) {
      std::vector<double> wanted = tensors[k].to_vector();
      for (double& x : wanted) x = double(float(x) * 2.0F);
      CHECK(made[k].to_vector() == wanted);
    }
  };
  check(foreach_mul(tensors, 2.0));
  TensorList made;
  auto step = compile([&] { made = foreach_mul(tensors, 2.0); });
  step();
  check(made);
  check(foreach_map([](auto x) { return x * 2.0; }, TensorList(tensors)));
}

TEST_CASE("states lie as their parameter does") {
  Tensor param = zeros({5, 3}).t();
  param.set_grad(param.clone());
  Adam adam({param});
  adam.step();
  for (const char* name : {"exp_avg", "exp_avg_sq"}) {
    CHECK(adam.state(param, name).strides() == param.strides());
  }
}

TEST_CASE("tensors that are dense in one order run as one line each") {
  const Tensor p = zeros({50, 40});
  const Tensor g = zeros({50, 40});
  LaunchTrace trace;
  auto step =
      compile([&] { foreach_add_(TensorList({p.t()}), TensorList({g.t()})); });
  step();
  REQUIRE(trace.launches().size() == 1);
  REQUIRE(trace.launches()[0].rows.size() == 1);
  CHECK(contains(step.output_code(), "struct Lines"));
  CHECK(contains(step.output_code(), "dense()"));
  auto plain = compile([&] { foreach_add_(TensorList({p}), TensorList({g})); });
  plain();
  CHECK_FALSE(contains(plain.output_code(), "Lines"));
}

TEST_CASE("reports count tensors, not lines, and say what is strided") {
  const Tensor m = zeros({30, 40});
  const TensorList slices({m.slice(1, 0, 40, 2), m.slice(1, 1, 40, 2)}, "w");
  const TensorList plain({zeros({30, 20}), zeros({30, 20})}, "v");
  auto step = compile([&] {
    foreach_add_(slices, 1.0);
    foreach_add_(plain, 1.0);
  });
  LaunchTrace trace;
  step();
  const std::string report = step.report();
  CHECK(contains(report, "4 tensors in 2 loops"));
  CHECK(contains(report, "separate from loop 1: only one of them is strided"));
  CHECK(contains(report, "w (strided)"));
  CHECK_FALSE(contains(report, "v (strided)"));
  REQUIRE(trace.launches().size() == 1);
  CHECK(trace.launches()[0].rows.size() == 4);
  CHECK(trace.launches()[0].rows[1].addresses[0] == slices[1].raw_data());
}

// ---- overlap ----------------------------------------------------------------

TEST_CASE("slices that share no element may be stored side by side") {
  const Tensor m = zeros({20, 30});
  const TensorList even({m.slice(1, 0, 30, 2)}, "even");
  const TensorList odd({m.slice(1, 1, 30, 2)}, "odd");
  const auto both = [&] {
    foreach_add_(even, 1.0);
    foreach_add_(odd, even);
    foreach_mul_(odd, 3.0);
  };
  both();
  auto step = compile(both);
  step();
  auto by_tiles = compile(both, {.backend = Backend::interpreted});
  by_tiles();
  // even: 1, 2, 3; odd: 3, 15, 54.
  CHECK(bitwise_equal(even[0], full({20, 15}, 3)));
  CHECK(bitwise_equal(odd[0], full({20, 15}, 54)));
}

TEST_CASE("slices that do share elements are an error that names both") {
  const Tensor m = zeros({20, 20});
  const auto refused = [&](const Tensor& a, const Tensor& b) {
    const TensorList first({a}, "first");
    const TensorList second({b}, "second");
    auto step = compile([&] { foreach_add_(first, second); });
    std::vector<std::string> messages = {
        error_of(step), error_of([&] { foreach_add_(first, second); }),
        error_of([&] {
          foreach_map_([](auto x, auto y) { return x + y; }, first, second);
        })};
    return messages;
  };
  for (const std::string& message :
       refused(m.narrow(1, 0, 10), m.narrow(1, 9, 10))) {
    CHECK(contains(message, "is stored but overlaps"));
    CHECK(contains(message, "first"));
    CHECK(contains(message, "second"));
  }
  for (const std::string& message :
       refused(m.narrow(1, 9, 10), m.narrow(1, 0, 10))) {
    CHECK(contains(message, "is stored but overlaps"));
  }
  for (const std::string& message : refused(m, m.t())) {
    CHECK(contains(message, "is stored but overlaps"));
  }
  // The very same elements: read first, then stored.
  for (const std::string& message :
       refused(m.slice(0, 0, 20, 3), m.slice(0, 0, 20, 3))) {
    CHECK(message == "no error");
  }
  CHECK(m.sum().item() == 0);
}

TEST_CASE("a view that coincides with what is stored is read before") {
  for (const Backend backend : {Backend::compiled, Backend::interpreted}) {
    const Tensor m = full({10, 12}, 3);
    const TensorList a({m.slice(1, 0, 12, 3), zeros({4})}, "a");
    const TensorList b({m.slice(1, 0, 12, 3), full({4}, 2)}, "b");
    REQUIRE(a.impl()->id != b.impl()->id);
    auto step =
        compile([&] { foreach_addcmul_(a, b, b, 1.0); }, {.backend = backend});
    step();
    CHECK(bitwise_equal(a[0], full({10, 4}, 12)));
    CHECK(bitwise_equal(a[1], full({4}, 4)));
  }
}

TEST_CASE("expanded tensors are read, and an error where they are stored") {
  const Tensor row = tensor({1.0, 2.0, 3.0}).view({1, 3});
  const Tensor wide = row.expand({4, 3});
  const TensorList target({zeros({4, 3})}, "target");
  const TensorList rows({wide}, "rows");
  foreach_add_(target, rows);
  auto step = compile([&] { foreach_add_(target, rows); });
  step();
  CHECK(target[0].to_vector() ==
        std::vector<double>{2, 4, 6, 2, 4, 6, 2, 4, 6, 2, 4, 6});
  auto store = compile([&] { foreach_add_(rows, 1.0); });
  CHECK(contains(error_of(store),
                 "rows[0] is stored but several of its elements share memory"));
  CHECK(contains(error_of([&] { foreach_add_(rows, 1.0); }), "rows[0]"));
  CHECK(contains(
      error_of([&] { foreach_map_([](auto x) { return x + 1.0; }, rows); }),
      "tensor 0 of output 1 (rows)"));
  CHECK(row.to_vector() == std::vector<double>{1, 2, 3});
}

// ---- recordings, files and models -------------------------------------------

TEST_CASE("a view of what a recording will change is a graph break") {
  const Tensor m = zeros({6, 8});
  const TensorList left({m.narrow(1, 0, 4)});
  double inside = -1;
  double outside = -1;
  auto step = compile([&] {
    foreach_add_(left, 1.0);
    outside = m.narrow(1, 4, 4).sum().item();
    inside = m.select(1, 3).sum().item();
    foreach_add_(left, 1.0);
  });
  step();
  CHECK(outside == 0);
  CHECK(inside == 6);
  CHECK(step.counters().graph_breaks == 1);
  CHECK(m.sum().item() == 48);
}

TEST_CASE("different shapes that meet through one list take two launches") {
  const Tensor m = zeros({6, 8});
  const TensorList a({m.t()}, "a");
  const TensorList b({zeros({12, 8}).slice(0, 0, 12, 2)}, "b");
  const TensorList steps = TensorList::per_tensor({tensor(2.0)}, "steps");
  auto step = compile([&] {
    foreach_add_(a, steps);
    foreach_sub_(b, steps);
  });
  step();
  CHECK(bitwise_equal(a[0], full({8, 6}, 2)));
  CHECK(bitwise_equal(b[0], full({6, 8}, -2)));
  CHECK(step.counters().graph_breaks == 1);
  CHECK(step.counters().launches == 2);
}

TEST_CASE("a checkpoint brings back views, and no recompilation") {
  const jit_testing::TempDir folder;
  const std::string path = folder.path() + "/state.safetensors";
  const Problem problem(5);
  Adam adam(problem.params.tensors());
  auto step = compile([&] { adam.step(); });
  step();
  save_checkpoint(path, adam);
  step();
  std::vector<Tensor> wanted;
  for (const Tensor& state : problem.params.tensors()) {
    wanted.push_back(state.clone());
  }

  const Problem again(5);
  Adam fresh(again.params.tensors());
  fresh.step();
  Adam loaded(again.params.tensors());
  load_checkpoint(path, loaded);
  auto go_on = compile([&] { loaded.step(); });
  go_on();
  CHECK(bitwise_equal(again.params.tensors(), wanted));
  CHECK(again.rest_holds());
  for (std::size_t k = 0; k < zoo().size(); ++k) {
    for (const auto& [name, state] : states_of(loaded, k)) {
      CHECK(state.strides() == states_of(adam, k).at(name).strides());
    }
  }
}

TEST_CASE("a model takes inputs with strides and adds to such gradients") {
  Generator generator(1);
  const Linear layer(6, 4, generator);
  const Linear same = layer.clone();
  Random random(3);
  const Tensor input = random_tensor({6, 5}, random, 0, DType::float32);
  Tensor grad = zeros({6, 4}).t();
  Tensor(layer.weight()).set_grad(grad);
  layer(input.t()).sum().backward();
  same(input.t().contiguous()).sum().backward();
  CHECK(bitwise_equal(grad, same.weight().grad()));
  CHECK(grad.strides() == Shape{1, 4});
  CHECK(bitwise_equal(layer.bias().grad(), same.bias().grad()));
}

TEST_CASE("gradients that expand repeats, or that are shared, become zero") {
  const Tensor a = tensor({1.0, 2.0, 3.0});
  const Tensor b = tensor({4.0, 5.0, 6.0});
  Tensor(a).set_grad(full({1}, 2).expand({3}));
  Tensor(b).set_grad(tensor({7.0, 8.0, 9.0}));
  const Tensor c = zeros({3});
  Tensor(c).set_grad(b.grad());
  SGD sgd({a, b, c}, {.lr = 0.1});
  sgd.zero_grad(false);
  CHECK(a.grad().to_vector() == std::vector<double>{0, 0, 0});
  CHECK(b.grad().to_vector() == std::vector<double>{0, 0, 0});
  const Linear layer = [] {
    Generator generator(1);
    return Linear(3, 1, generator, false);
  }();
  Tensor weight = layer.weight();
  weight.set_grad(full({1, 1}, 2).expand({1, 3}));
  Sequential({layer}).zero_grad(false);
  CHECK(weight.grad().to_vector() == std::vector<double>{0, 0, 0});
}

TEST_CASE("a dtype is changed in the order that a view has") {
  const Tensor matrix = tensor({1, 2, 3, 4, 5, 6}).view({2, 3});
  const Tensor turned = matrix.t().to(DType::float16);
  CHECK(turned.strides() == Shape{1, 3});
  CHECK(turned.to_vector() == matrix.t().to_vector());
}

TEST_CASE("one memory in two shapes that meet strides takes two launches") {
  const Tensor x = tensor({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}).view({4, 3});
  const TensorList rows({x}, "rows");
  const TensorList flat({x.view({12})}, "flat");
  const TensorList turned({full({3, 4}, 2).t()}, "turned");
  const TensorList column({full({12, 2}, 3).select(1, 1)}, "column");
  TensorList tripled;
  auto step = compile([&] {
    foreach_add_(rows, turned);
    tripled = foreach_mul(flat, column);
  });
  step();
  CHECK(x.to_vector()[11] == 14);
  CHECK(tripled[0].to_vector()[0] == 9);
  CHECK(tripled[0].to_vector()[11] == 42);
  CHECK(step.counters().graph_breaks == 1);
  CHECK(step.counters().launches == 2);
}

TEST_CASE("a file that cannot be loaded everywhere changes nothing") {
  const jit_testing::TempDir dir;
  save_tensors(dir / "file", {{"b", full({2}, 7)}, {"e", full({2, 3}, 7)}});
  const Tensor e = zeros({1, 3}).expand({2, 3});
  const Tensor b = zeros({2});
  const std::string message = testing::message_of<Error>(
      [&] { load_tensors(dir / "file", {{"b", b}, {"e", e}}); });
  CHECK(contains(message, "\"e\""));
  CHECK(contains(message, "share memory"));
  CHECK(b.to_vector() == std::vector<double>{0, 0});
}
