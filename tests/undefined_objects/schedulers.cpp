#include <doctest/doctest.h>

#include <cstddef>

#include "rows.h"

using namespace fuse;

namespace undefined_objects {
namespace {

Tensor param() { return tensor({1, 2}); }

/// What a scheduler does after its optimizer was moved away.
template <class Call>
void with_each(const Call& call) {
  for (const std::string& name : scheduler_names()) {
    SGD sgd({param()}, {.lr = 0.5, .momentum = 0.9});
    const auto scheduler = make_scheduler(name, sgd, 8);
    const SGD taken = std::move(sgd);
    call(*scheduler);
  }
}

/// Each of them must refuse; the last one's Error is the row's.
template <class Call>
void each_refuses(const Call& call) {
  const auto names = scheduler_names();
  std::size_t refused = 0;
  with_each([&](LRScheduler& scheduler) {
    ++refused;
    if (refused == names.size()) return call(scheduler);
    CHECK_THROWS_AS(call(scheduler), Error);
  });
}

// All of them say it with their names; StepLR is the last one.
constexpr const char* gone_in_step =
    "StepLR: the optimizer has 0 parameter groups, but had 1 when this "
    "scheduler was made";
constexpr const char* no_group = "SGD: parameter group 0 is out of range";

struct Composite {
  SGD sgd{{param()}, {.lr = 0.5}};
  LinearLR first{sgd};
  ExponentialLR second{sgd, {.gamma = 0.9}};
  SequentialLR in_sequence{
      sgd, {.schedulers = {&first, &second}, .milestones = {2}}};
};

struct Chained {
  SGD sgd{{param()}, {.lr = 0.5}};
  LinearLR first{sgd};
  ChainedScheduler chained{{&first}};
};

/// Its optimizer was moved away.
template <class T>
struct Gone : T {
  SGD taken = std::move(this->sgd);
};

struct Plateau {
  SGD sgd{{param()}, {.lr = 0.5}};
  ReduceLROnPlateau scheduler{sgd};
};

PerGroup<double> gone_list() { return left_of(PerGroup<double>({0.1, 0.2})); }

constexpr const char* linear_gone =
    "LinearLR: the optimizer has 0 parameter groups";
constexpr const char* plateau_gone =
    "ReduceLROnPlateau: the optimizer has no parameter groups";

}  // namespace

Rows rows_of_schedulers() {
  using Base = LRScheduler;
  return {
      {"make_scheduler",
       [] {
         SGD sgd = left_of(SGD({param()}, {.lr = 0.5}));
         use(make_scheduler("LinearLR", sgd, 8));
       },
       "LinearLR: the optimizer has no parameter groups"},
      {"ScheduledBy::ScheduledBy",
       [] {
         SGD sgd = left_of(SGD({param()}, {.lr = 0.5}));
         const StepLR made(sgd, {.step_size = 1});
       },
       "StepLR: the optimizer has no parameter groups"},
      answer("ScheduledBy::name",
             [] { with_each([](Base& s) { CHECK(!s.name().empty()); }); }),
      answer("ScheduledBy::options",
             [] {
               SGD sgd({param()}, {.lr = 0.5});
               const StepLR made(sgd, {.step_size = 3});
               const SGD taken = std::move(sgd);
               CHECK(made.options().step_size == 3);
             }),

      answer("SchedulerBase::name",
             [] { with_each([](Base& s) { CHECK(!s.name().empty()); }); }),
      answer("SchedulerBase::get_last_lr",
             [] {
               with_each([](Base& s) { CHECK(s.get_last_lr().size() == 1); });
             }),
      answer("SchedulerBase::last_epoch",
             [] { with_each([](Base& s) { CHECK(s.last_epoch() == 0); }); }),
      answer("SchedulerBase::optimizer",
             [] {
               with_each(
                   [](Base& s) { CHECK(s.optimizer().group_count() == 0); });
             }),
      answer("SchedulerBase::with_parts",
             [] {
               with_each([](Base& s) { CHECK(s.with_parts().size() == 1); });
             }),
      {"SchedulerBase::state",
       [] { each_refuses([](Base& s) { use(s.state()); }); }, no_group},
      {"SchedulerBase::load_state",
       [] { each_refuses([](Base& s) { s.load_state({}); }); },
       "cannot load the state of \"\" into StepLR"},
      {"SchedulerBase::check_state",
       [] { each_refuses([](Base& s) { s.check_state({}); }); },
       "cannot load the state of \"\" into StepLR"},

      {"LRScheduler::step", [] { each_refuses([](Base& s) { s.step(); }); },
       gone_in_step},
      {"LRScheduler::take_in_groups",
       [] { each_refuses([](Base& s) { s.take_in_groups(); }); }, gone_in_step},
      {"LRScheduler::initial_step",
       [] { each_refuses([](Base& s) { s.initial_step(); }); }, gone_in_step},
      {"LRScheduler::restart",
       [] { each_refuses([](Base& s) { s.restart(); }); }, gone_in_step},
      answer("LRScheduler::undo", [] { with_each([](Base& s) { s.undo(); }); }),
      {"RuleScheduler::step", [] { each_refuses([](Base& s) { s.step(); }); },
       gone_in_step},
      {"RuleScheduler::take_in_groups",
       [] { each_refuses([](Base& s) { s.take_in_groups(); }); }, gone_in_step},
      {"RuleScheduler::initial_step",
       [] { each_refuses([](Base& s) { s.initial_step(); }); }, gone_in_step},
      {"RuleScheduler::restart",
       [] { each_refuses([](Base& s) { s.restart(); }); }, gone_in_step},
      answer("RuleScheduler::undo",
             [] { with_each([](Base& s) { s.undo(); }); }),
      answer("RuleScheduler::base_lrs",
             [] {
               SGD sgd({param()}, {.lr = 0.5});
               const LinearLR made(sgd);
               const SGD taken = std::move(sgd);
               CHECK(made.base_lrs() == std::vector<double>{0.5});
             }),
      {"CosineAnnealingWarmRestarts::step",
       [] {
         SGD sgd({param()}, {.lr = 0.5});
         CosineAnnealingWarmRestarts made(sgd, {.T_0 = 2});
         const SGD taken = std::move(sgd);
         made.step(1.5);
       },
       "CosineAnnealingWarmRestarts: the optimizer has 0 parameter groups"},

      {"SequentialLR::SequentialLR",
       [] {
         SGD sgd({param()}, {.lr = 0.5});
         const SequentialLR made(sgd, {.schedulers = {nullptr}});
       },
       "SequentialLR: the scheduler at index 0 is null"},
      answer("SequentialLR::name",
             [] {
               CHECK(Gone<Composite>().in_sequence.name() == "SequentialLR");
             }),
      {"SequentialLR::step", [] { Gone<Composite>().in_sequence.step(); },
       linear_gone},
      {"SequentialLR::take_in_groups",
       [] { Gone<Composite>().in_sequence.take_in_groups(); }, linear_gone},
      answer("SequentialLR::undo",
             [] { Gone<Composite>().in_sequence.undo(); }),
      {"SequentialLR::initial_step",
       [] { Gone<Composite>().in_sequence.initial_step(); }, linear_gone},
      {"SequentialLR::restart", [] { Gone<Composite>().in_sequence.restart(); },
       linear_gone},
      {"ChainedScheduler::ChainedScheduler",
       [] { const ChainedScheduler made({nullptr}); },
       "ChainedScheduler: the scheduler at index 0 is null"},
      answer(
          "ChainedScheduler::name",
          [] { CHECK(Gone<Chained>().chained.name() == "ChainedScheduler"); }),
      {"ChainedScheduler::step", [] { Gone<Chained>().chained.step(); },
       linear_gone},
      {"ChainedScheduler::take_in_groups",
       [] { Gone<Chained>().chained.take_in_groups(); }, linear_gone},
      answer("ChainedScheduler::undo", [] { Gone<Chained>().chained.undo(); }),
      {"ChainedScheduler::initial_step",
       [] { Gone<Chained>().chained.initial_step(); }, linear_gone},
      {"ChainedScheduler::restart", [] { Gone<Chained>().chained.restart(); },
       linear_gone},

      {"ReduceLROnPlateau::ReduceLROnPlateau",
       [] {
         SGD sgd = left_of(SGD({param()}, {.lr = 0.5}));
         const ReduceLROnPlateau made(sgd);
       },
       plateau_gone},
      {"ReduceLROnPlateau::step", [] { Gone<Plateau>().scheduler.step(1); },
       plateau_gone},
      answer("ReduceLROnPlateau::name",
             [] {
               CHECK(Gone<Plateau>().scheduler.name() == "ReduceLROnPlateau");
             }),
      answer("ReduceLROnPlateau::best",
             [] { CHECK(Gone<Plateau>().scheduler.best() > 0); }),
      answer("ReduceLROnPlateau::num_bad_epochs",
             [] { CHECK(Gone<Plateau>().scheduler.num_bad_epochs() == 0); }),
      answer("ReduceLROnPlateau::in_cooldown",
             [] { CHECK(!Gone<Plateau>().scheduler.in_cooldown()); }),

      answer("PerGroup::given", [] { CHECK(!PerGroup<double>().given()); }),
      answer("PerGroup::is_list", [] { CHECK(gone_list().is_list()); }),
      answer("PerGroup::size", [] { CHECK(gone_list().size() == 0); }),
      {"PerGroup::operator[]", [] { use(gone_list()[0]); }},
      {"PerGroup::operator[]", [] { use(PerGroup<double>()[1]); }},
      {"PerGroup::check", [] { gone_list().check("CyclicLR", "max_lr", 1); },
       "CyclicLR: max_lr must have"},
      {"PerGroup::check",
       [] { PerGroup<double>().check("CyclicLR", "max_lr", 1); },
       "CyclicLR needs max_lr"},
      {"check_lambdas", [] { check_lambdas("LambdaLR", LRLambda(), 1); },
       "LambdaLR: lr_lambda should be a function, but is empty"},
  };
}

}  // namespace undefined_objects
