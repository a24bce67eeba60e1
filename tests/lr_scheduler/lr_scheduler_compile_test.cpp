#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/lr_scheduler/all.h"
#include "fusebook/optim/all.h"
#include "support/lr_scheduler_rows.h"
#include "support/sanitized.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace lr_testing;
using namespace step_testing;

namespace {

constexpr int kSteps = 1000;

using Start = std::vector<double>;  // the rate of each group
const Start kOne = {0.01};
const Start kUnlike = {0.01, 0.003};
const Start kAlike = {0.01, 0.01, 0.01};

// ---- optimizers -------------------------------------------------------------

struct Kind {
  std::string name;
  const char* momentum;  // what schedulers may cycle, or null
  bool reads_rate;       // at every step
  std::function<std::unique_ptr<Optimizer>(const Start&, bool tensors)> make;
};

// One small parameter in each group. As tensors: the rate and the momentum.
template <class Optim, class Options>
std::unique_ptr<Optimizer> make_groups(const Options& options,
                                       const char* momentum, const Start& rates,
                                       bool tensors) {
  std::vector<typename Optim::Group> groups;
  for (std::size_t g = 0; g < rates.size(); ++g) {
    groups.emplace_back(make_params({{std::int64_t(g) + 2}}, g + 1), options);
    groups.back()["lr"] = Scalar(rates[g]);
    if (!tensors) continue;
    groups.back()["lr"] = Scalar(tensor(rates[g]));
    if (momentum == nullptr) continue;
    Scalar& cycled = groups.back()[momentum];
    cycled = Scalar(tensor(cycled.value()));
  }
  return std::make_unique<Optim>(std::move(groups));
}

template <class Optim, class Options>
Kind make_kind(const char* name, const char* momentum,
               const Options& options = {}, bool reads_rate = true) {
  return {name, momentum, reads_rate, [=](const Start& rates, bool tensors) {
            return make_groups<Optim>(options, momentum, rates, tensors);
          }};
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      make_kind<Adam, AdamOptions>("Adam", "betas[0]"),
      make_kind<Adam>("AdamW", "betas[0]", AdamWOptions().as_adam()),
      make_kind<NAdam, NAdamOptions>("NAdam", "betas[0]"),
      make_kind<RAdam, RAdamOptions>("RAdam", "betas[0]"),
      make_kind<Adamax, AdamaxOptions>("Adamax", "betas[0]"),
      make_kind<SGD, SGDOptions>("SGD", "momentum"),
      make_kind<RMSprop, RMSpropOptions>("RMSprop", "momentum"),
      make_kind<Adagrad, AdagradOptions>("Adagrad", nullptr),
      make_kind<Adadelta, AdadeltaOptions>("Adadelta", nullptr),
      make_kind<ASGD, ASGDOptions>("ASGD", nullptr),
      make_kind<LAMB, LAMBOptions>("LAMB", "betas[0]"),
      make_kind<LARS, LARSOptions>("LARS", "momentum"),
      // Its rate is where the step sizes begin.
      make_kind<Rprop, RpropOptions>("Rprop", nullptr, {}, false),
  };
  return all;
}

// ---- running a pair ---------------------------------------------------------

// An optimizer with a scheduler, which may come later.
struct Trainer {
  Trainer(const Kind& kind, const Start& rates, bool tensors)
      : opt(kind.make(rates, tensors)) {}
  void attach(const ScheduleRow& row, const Kind& kind) {
    sched = row.make(*opt, kind.momentum != nullptr);
  }
  void step() {
    opt->step();
    if (sched.step) sched.step(++made);
  }

  std::unique_ptr<Optimizer> opt;
  Made sched;
  std::int64_t made = 0;
};

// What the optimizer reads and schedulers move: for the rate and the momentum
// the value in every group.
using Values = std::vector<std::vector<double>>;

Values read_values(Optimizer& opt, const Kind& kind) {
  Values values;
  for (const char* const name :
       {kind.reads_rate ? "lr" : nullptr, kind.momentum}) {
    if (name == nullptr) continue;
    values.emplace_back();
    for (std::size_t g = 0; g < opt.group_count(); ++g) {
      values.back().push_back(opt.group(g)[name].value());
    }
  }
  return values;
}

// Says whether moving numbers must cost a recompile. Where groups differ each
// has its own number in a table that is read anew at every launch; a number
// that all share is baked into the kernel until one of them moves, and then all
// are free.
class Baked {
 public:
  explicit Baked(const Values& first) : first_(first) {
    for (const std::vector<double>& v : first) {
      const bool shared =
          std::count(v.begin(), v.end(), v.front()) == std::ptrdiff_t(v.size());
      baked_.push_back(shared);
    }
  }

  void see(const Values& now) {
    for (std::size_t i = 0; i < now.size(); ++i) {
      moved_ = moved_ || (baked_[i] && now[i] != first_[i]);
    }
  }
  int recompiles() const { return moved_ ? 1 : 0; }

 private:
  Values first_;
  std::vector<bool> baked_;
  bool moved_ = false;
};

bool same_bits(Optimizer& a, Optimizer& b, const Kind& kind) {
  return bitwise_equal(a.parameters(), b.parameters()) &&
         read_values(a, kind) == read_values(b, kind);
}

struct Outcome {
  Counters counters;
  int moves = 0;           // recompiles that its numbers must cost
  bool same_bits = false;  // as without compile
  Counters compared;       // when the bits were
};

Outcome run(const ScheduleRow& row, const Kind& kind, const Start& rates,
            bool tensors, int attach_at = 0) {
  Trainer compiled(kind, rates, tensors);
  Trainer eager(kind, rates, tensors);
  auto step = compile([&] { compiled.step(); });
  Outcome outcome;
  // Eager steps take most of the time: with tensors all are made, with numbers
  // enough to pass every recompile. With all of them, the thread sanitizer takes
  // more than an hour.
  const int eager_steps = tensors && !testing::thread_sanitized ? kSteps : 150;
  Baked baked(read_values(*compiled.opt, kind));
  for (int n = 0; n < kSteps; ++n) {
    if (n == attach_at) {
      compiled.attach(row, kind);
      eager.attach(row, kind);
    }
    if (n == 0) baked = Baked(read_values(*compiled.opt, kind));
    baked.see(read_values(*compiled.opt, kind));
    step();
    if (n >= eager_steps) continue;
    eager.step();
    if (n + 1 < eager_steps) continue;
    outcome.same_bits = same_bits(*compiled.opt, *eager.opt, kind);
    outcome.compared = step.counters();
  }
  outcome.counters = step.counters();
  outcome.moves = tensors ? 0 : baked.recompiles();
  return outcome;
}

void check(const Outcome& outcome, int recompiles) {
  CHECK(outcome.counters.launches == kSteps);
  CHECK(outcome.counters.compilations == 1 + recompiles);
  CHECK(outcome.counters.recompiles == recompiles);
  CHECK(outcome.counters.graph_breaks == 0);
  CHECK(outcome.same_bits);
  CHECK(outcome.compared.recompiles == recompiles);
}

}  // namespace

TEST_CASE("tensors: every scheduler with every optimizer compiles once") {
  for (const Kind& kind : kinds()) {
    for (const ScheduleRow& row : rows()) {
      CAPTURE(kind.name);
      CAPTURE(row.name);
      check(run(row, kind, kUnlike, true), 0);
    }
  }
}

TEST_CASE("numbers: every scheduler with every optimizer recompiles once") {
  for (const Kind& kind : kinds()) {
    for (const ScheduleRow& row : rows()) {
      CAPTURE(kind.name);
      CAPTURE(row.name);
      check(run(row, kind, kOne, false), kind.reads_rate ? 1 : 0);
    }
  }
}

TEST_CASE("numbers that groups share recompile once, others never") {
  std::size_t recompiles = 0;
  for (const ScheduleRow& row : rows()) {
    CAPTURE(row.name);
    const Outcome alike = run(row, kinds()[0], kAlike, false);
    check(alike, alike.moves);
    recompiles += std::size_t(alike.moves);
    const Outcome unlike = run(row, kinds()[0], kUnlike, false);
    check(unlike, unlike.moves);
  }
  // LambdaLR's functions make the rates differ from the beginning.
  CHECK(recompiles == rows().size() - 1);
}

TEST_CASE("numbers that stay recompile nothing") {
  const ScheduleRow still = {"still",
                             [](Optimizer& opt, bool) {
                               return make<StepLR>(
                                   opt, StepLROptions{.step_size = kSteps});
                             },
                             {}};
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    check(run(still, kind, kOne, false), 0);
  }
}

TEST_CASE("a scheduler that comes after the first compiled calls") {
  for (const ScheduleRow& row : rows()) {
    CAPTURE(row.name);
    check(run(row, kinds()[0], kUnlike, true, 2), 0);
    const Outcome late = run(row, kinds()[0], kOne, false, 2);
    // Also where a cycle moves rate and momentum from different calls on.
    CHECK(late.moves == 1);
    check(late, 1);
  }
}
