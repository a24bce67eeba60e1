#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/lr_scheduler/all.h"
#include "fusebook/support/error.h"
#include "support/lr_scheduler_rows.h"
#include "support/testing.h"

using namespace fuse;
using namespace lr_testing;
using testing::contains;
using testing::message_of;

TEST_CASE("a restored scheduler continues with the same bits") {
  for (const ScheduleRow& row : rows()) {
    CAPTURE(row.name);
    const bool momentum = row.momentum != nullptr;
    Adam opt = make_optimizer();
    const Made made = row.make(opt, momentum);
    for (int e = 1; e <= 123; ++e) made.step(e);
    const SchedulerState saved = made.scheduler().state();
    const std::vector<double> lrs = values(opt, "lr");
    const std::vector<double> betas = values(opt, "betas[0]");

    // As in a fresh process; it begins with rates of its own.
    Adam fresh_opt = make_optimizer({0.7, 0.8, 0.9});
    const Made fresh = row.make(fresh_opt, momentum);
    CHECK(fresh.scheduler().state() != saved);
    fresh.scheduler().load_state(saved);
    set_values(fresh_opt, "lr", lrs);
    set_values(fresh_opt, "betas[0]", betas);
    CHECK(fresh.scheduler().state() == saved);
    CHECK(fresh.scheduler().last_epoch() == 123);
    CHECK(fresh.scheduler().get_last_lr() == lrs);
    for (int e = 124; e < 700; ++e) {
      made.step(e);
      fresh.step(e);
      REQUIRE(values(opt, "lr") == values(fresh_opt, "lr"));
      REQUIRE(values(opt, "betas[0]") == values(fresh_opt, "betas[0]"));
    }
    CHECK(fresh.scheduler().state() == made.scheduler().state());
  }
}

TEST_CASE("a state brings the initial rates to a later scheduler") {
  Adam opt = one_group();
  LinearLR sched(opt, {.total_iters = 5});
  Adam fresh = one_group(0.5);
  LinearLR restored(fresh, {.total_iters = 5});
  restored.load_state(sched.state());
  CHECK(fresh.group(0).initial_lr == 0.01);
}

namespace {

using Damage = std::function<void(SchedulerState&)>;

// Ways in which a state may be no state of a scheduler.
std::vector<std::pair<Damage, const char*>> damages() {
  return {
      {[](SchedulerState& s) { s.kind = "Foreign"; }, "cannot load the state"},
      {[](SchedulerState& s) { s.values.erase("last_epoch"); },
       "\"last_epoch\" is missing"},
      {[](SchedulerState& s) { s.values["more"] = {1}; }, "named values"},
      {[](SchedulerState& s) { s.values["last_lr"].pop_back(); },
       "2 numbers instead of 3"},
      {[](SchedulerState& s) { s.values["last_epoch"] = {}; },
       "0 numbers instead of 1"},
      {[](SchedulerState& s) { s.values["last_epoch"] = {1.5}; },
       "not a valid count"},
      {[](SchedulerState& s) {
         s.values["last_epoch"] = {std::numeric_limits<double>::quiet_NaN()};
       },
       "not a valid count"},
      {[](SchedulerState& s) { s.values["last_epoch"] = {1e300}; },
       "not a valid count"},
      {[](SchedulerState& s) { s.schedulers.emplace_back(); },
       "inner schedulers"},
  };
}

}  // namespace

TEST_CASE("a state that does not fit is refused and changes nothing") {
  for (const ScheduleRow& row : rows()) {
    CAPTURE(row.name);
    Adam opt = make_optimizer();
    const Made made = row.make(opt, false);
    const SchedulerState start = made.scheduler().state();
    made.step(1);
    const SchedulerState before = made.scheduler().state();
    for (const auto& [damage, message] : damages()) {
      CAPTURE(message);
      // In the last part of all, so that the others were read already.
      SchedulerState bad = start;
      damage(bad.schedulers.empty() ? bad : bad.schedulers.back());
      if (row.name == "ChainedScheduler") bad.values["last_epoch"] = {77};
      CHECK(
          contains(message_of<Error>([&] { made.scheduler().load_state(bad); }),
                   message));
      CHECK(made.scheduler().state() == before);
    }
  }
}

TEST_CASE("a fresh ReduceLROnPlateau keeps its infinite best") {
  Adam opt = one_group();
  ReduceLROnPlateau lowest(opt);
  ReduceLROnPlateau highest(opt, {.mode = "max"});
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(lowest.state().values.at("best") == std::vector{infinity});
  CHECK(highest.state().values.at("best") == std::vector{-infinity});
  lowest.step(3);
  CHECK(lowest.best() == 3);
  lowest.load_state(highest.state());
  CHECK(lowest.best() == -infinity);
}
