#include <doctest/doctest.h>

#include "undefined_objects/rows.h"

namespace undefined_objects {

using namespace fuse;

namespace {

// One whose scale had been placed beside gradients.
GradScaler left_scaler() {
  GradScaler scaler({.init_scale = 4.0});
  use(scaler.scale(tensor(1.0)));
  return left_of(std::move(scaler));
}

Sequential small_model() {
  Generator generator(1);
  return Sequential({Linear(2, 2, generator)});
}

AveragedModel<Sequential> left_average() {
  return left_of(AveragedModel(small_model()));
}

ParameterAverages left_averages() {
  return left_of(ParameterAverages({zeros({2})}, get_swa_multi_avg_fn()));
}

Adam stepped() {
  Tensor param = zeros({2});
  param.set_grad(zeros({2}));
  return Adam({param});
}

}  // namespace

// Without its numbers, a scaler begins anew.
Rows rows_of_scalers() {
  return {
      {"GradScaler::scale", [] { use(GradScaler().scale(undefined())); }},
      {"GradScaler::unscale_",
       [] {
         Adam gone = stepped();
         const Adam taken = std::move(gone);
         left_scaler().unscale_(gone);
       },
       "Adam::gradient_lists: this optimizer was moved from"},
      {"GradScaler::step",
       [] {
         Adam gone = stepped();
         const Adam taken = std::move(gone);
         left_scaler().step(gone);
       },
       "Adam::gradient_lists: this optimizer was moved from"},
      answer("GradScaler::note_step",
             [] {
               GradScaler left = left_scaler();
               const Adam adam = stepped();
               left.note_step(adam, 1.0, cpu_device);
               CHECK(left.found_inf(adam).value_or(0.0).value() == 1);
             }),
      {"GradScaler::update", [] { left_scaler().update(); },
       "GradScaler::update at "},
      answer("GradScaler::update",
             [] {
               GradScaler left = left_scaler();
               left.update(2.0);
               CHECK(left.get_scale() == 2);
             }),
      answer("GradScaler::found_inf",
             [] {
               const Adam adam = stepped();
               CHECK(!left_scaler().found_inf(adam));
             }),
      answer("GradScaler::get_scale",
             [] { CHECK(left_scaler().get_scale() == 4); }),
      answer("GradScaler::get_growth_factor",
             [] { CHECK(left_scaler().get_growth_factor() == 2); }),
      answer("GradScaler::get_backoff_factor",
             [] { CHECK(left_scaler().get_backoff_factor() == 0.5); }),
      answer("GradScaler::get_growth_interval",
             [] { CHECK(left_scaler().get_growth_interval() == 2000); }),
      answer("GradScaler::set_growth_factor",
             [] { left_scaler().set_growth_factor(3); }),
      answer("GradScaler::set_backoff_factor",
             [] { left_scaler().set_backoff_factor(0.1); }),
      answer("GradScaler::set_growth_interval",
             [] { left_scaler().set_growth_interval(5); }),
      answer("GradScaler::is_enabled",
             [] { CHECK(left_scaler().is_enabled()); }),
      answer("GradScaler::state_dict",
             [] { CHECK(left_scaler().state_dict().scale == 4); }),
      {"ParameterAverages::ParameterAverages",
       [] {
         const ParameterAverages made({undefined()}, get_swa_multi_avg_fn());
       }},
      {"ParameterAverages::update",
       [] { left_averages().update({zeros({2})}); },
       "ParameterAverages::update at "},
      answer("ParameterAverages::n_averaged",
             [] { CHECK(left_averages().n_averaged() == 0); }),
      answer("ParameterAverages::set_n_averaged",
             [] { left_averages().set_n_averaged(3); }),
      {"AveragedModel::update_parameters",
       [] { left_average().update_parameters(small_model()); },
       "ParameterAverages::update at "},
      answer("AveragedModel::operator()",
             [] {
               const Tensor input = zeros({1, 2});
               CHECK(left_average()(input).impl() == input.impl());
             }),
      answer("AveragedModel::n_averaged",
             [] { CHECK(left_average().n_averaged() == 0); }),
      answer("AveragedModel::set_n_averaged",
             [] { left_average().set_n_averaged(3); }),
      answer("GradScaler::load_state_dict",
             [] {
               GradScaler left = left_scaler();
               left.load_state_dict({8, 2, 0.5, 10, 1});
               CHECK(left.get_scale() == 8);
             }),
  };
}

}  // namespace undefined_objects
