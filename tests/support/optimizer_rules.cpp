#include "support/optimizer_rules.h"

#include <bit>
#include <initializer_list>
#include <utility>

namespace optimizer_rules {
namespace {

/// A rate as a number, or as a tensor with another value.
fuse::Scalar rate(bool as_tensor, double number, double in_tensor) {
  return as_tensor ? fuse::Scalar(fuse::tensor(in_tensor))
                   : fuse::Scalar(number);
}

bool bit(unsigned bits, unsigned k) { return ((bits >> k) & 1U) != 0; }

/// Half of all settings have a tensor for a rate.
bool odd(unsigned bits) { return std::popcount(bits) % 2 != 0; }

std::string words(std::initializer_list<std::pair<bool, const char*>> chosen) {
  std::string text;
  for (const auto& [on, word] : chosen) {
    if (on) text += (text.empty() ? "" : ", ") + std::string(word);
  }
  return text.empty() ? "defaults" : text;
}

std::vector<Case> sgd_cases() {
  std::vector<Case> cases;
  for (unsigned bits = 0; bits < 32; ++bits) {
    fuse::SGDOptions o;
    o.maximize = bit(bits, 0);
    o.weight_decay = bit(bits, 1) ? 0.1 : 0.0;
    o.lr = rate(odd(bits), 0.05, 0.03);
    o.nesterov = bit(bits, 2);
    o.dampening = bit(bits, 3) ? 0.25 : 0.0;
    o.momentum = bit(bits, 4) ? 0.9 : 0.0;
    if (o.nesterov && (bit(bits, 3) || !bit(bits, 4))) continue;
    cases.push_back(make_case<fuse::SGD>(words({{bit(bits, 0), "maximize"},
                                                {bit(bits, 1), "weight_decay"},
                                                {odd(bits), "tensor lr"},
                                                {bit(bits, 2), "nesterov"},
                                                {bit(bits, 3), "dampening"},
                                                {bit(bits, 4), "momentum"}}),
                                         o));
  }
  return cases;
}

/// For NAdam and RAdam.
template <class Kind, class Options>
std::vector<Case> decoupling_cases(std::array<double, 3> start) {
  std::vector<Case> cases;
  for (unsigned bits = 0; bits < 8; ++bits) {
    Options o;
    o.maximize = bit(bits, 0);
    o.lr = rate(odd(bits), 0.01, 0.02);
    o.decoupled_weight_decay = bit(bits, 1);
    o.weight_decay = bit(bits, 2) ? 0.1 : 0.0;
    cases.push_back(make_case<Kind>(words({{bit(bits, 0), "maximize"},
                                           {odd(bits), "tensor lr"},
                                           {bit(bits, 1), "decoupled"},
                                           {bit(bits, 2), "weight_decay"}}),
                                    o, start));
  }
  // Other betas; below one half lerp takes its other branch. beta2 = 0.5 never
  // gets long averages, 0.9 soon does.
  for (const double beta2 : {0.5, 0.9}) {
    Options o;
    o.betas = {0.3, beta2};
    o.eps = 1e-2;
    o.lr = 0.1;
    cases.push_back(
        make_case<Kind>("beta2 " + std::to_string(beta2), o, start));
  }
  return cases;
}

std::vector<Case> nadam_cases() {
  auto cases = decoupling_cases<fuse::NAdam, fuse::NAdamOptions>({0, 0, 1});
  fuse::NAdamOptions o{.lr = 0.05, .betas = {0.8, 0.99}, .eps = 1e-6};
  o.momentum_decay = 0.5;
  o.weight_decay = 0.2;
  o.maximize = true;
  cases.push_back(make_case<fuse::NAdam>("momentum_decay", o, {0, 0, 1}));
  return cases;
}

std::vector<Case> adamax_cases() {
  std::vector<Case> cases;
  for (unsigned bits = 0; bits < 8; ++bits) {
    fuse::AdamaxOptions o;
    o.maximize = bit(bits, 0);
    o.lr = rate(odd(bits), 0.02, 0.05);
    o.weight_decay = bit(bits, 1) ? 0.1 : 0.0;
    if (bit(bits, 2)) {
      o.betas = {0.4, 0.3};
      o.eps = 0.05;
    }
    cases.push_back(make_case<fuse::Adamax>(words({{bit(bits, 0), "maximize"},
                                                   {odd(bits), "tensor lr"},
                                                   {bit(bits, 1), "decay"},
                                                   {bit(bits, 2), "betas"}}),
                                            o));
  }
  return cases;
}

std::vector<Case> adagrad_cases() {
  std::vector<Case> cases;
  for (unsigned bits = 0; bits < 16; ++bits) {
    fuse::AdagradOptions o;
    o.maximize = bit(bits, 0);
    o.lr = rate(odd(bits), 0.05, 0.1);
    o.weight_decay = bit(bits, 1) ? 0.1 : 0.0;
    o.initial_accumulator_value = bit(bits, 2) ? 0.5 : 0.0;
    if (bit(bits, 3)) {
      o.lr_decay = 0.3;
      o.eps = 1e-3;
    }
    cases.push_back(make_case<fuse::Adagrad>(
        words({{bit(bits, 0), "maximize"},
               {odd(bits), "tensor lr"},
               {bit(bits, 1), "weight_decay"},
               {bit(bits, 2), "initial_accumulator_value"},
               {bit(bits, 3), "lr_decay"}}),
        o, {bit(bits, 2) ? 0.5 : 0.0}));
  }
  return cases;
}

std::vector<Case> adadelta_cases() {
  std::vector<Case> cases;
  for (unsigned bits = 0; bits < 8; ++bits) {
    fuse::AdadeltaOptions o;
    o.maximize = bit(bits, 0);
    o.lr = rate(odd(bits), 1.0, 0.5);
    o.weight_decay = bit(bits, 1) ? 0.1 : 0.0;
    if (bit(bits, 2)) {
      o.rho = 0.6;
      o.eps = 1e-2;
    }
    cases.push_back(
        make_case<fuse::Adadelta>(words({{bit(bits, 0), "maximize"},
                                         {odd(bits), "tensor lr"},
                                         {bit(bits, 1), "weight_decay"},
                                         {bit(bits, 2), "rho"}}),
                                  o));
  }
  return cases;
}

std::vector<Case> rmsprop_cases() {
  std::vector<Case> cases;
  for (unsigned bits = 0; bits < 16; ++bits) {
    fuse::RMSpropOptions o;
    o.maximize = bit(bits, 0);
    o.lr = rate(odd(bits), 0.01, 0.02);
    o.weight_decay = bit(bits, 1) ? 0.1 : 0.0;
    o.centered = bit(bits, 2);
    o.momentum = bit(bits, 3) ? 0.5 : 0.0;
    if (bit(bits, 0)) {
      o.alpha = 0.8;
      o.eps = 1e-3;
    }
    cases.push_back(
        make_case<fuse::RMSprop>(words({{bit(bits, 0), "maximize"},
                                        {odd(bits), "tensor lr"},
                                        {bit(bits, 1), "weight_decay"},
                                        {bit(bits, 2), "centered"},
                                        {bit(bits, 3), "momentum"}}),
                                 o));
  }
  return cases;
}

std::vector<Case> rprop_cases() {
  std::vector<Case> cases;
  for (unsigned bits = 0; bits < 4; ++bits) {
    fuse::RpropOptions o;
    o.maximize = bit(bits, 0);
    o.lr = rate(odd(bits), 0.01, 0.03);
    if (bit(bits, 1)) {
      // Both bounds are met, and the first step size lies outside.
      o.etas = {0.3, 1.5};
      o.step_sizes = {8e-3, 0.0125};
    }
    cases.push_back(make_case<fuse::Rprop>(words({{bit(bits, 0), "maximize"},
                                                  {odd(bits), "tensor lr"},
                                                  {bit(bits, 1), "bounds"}}),
                                           o, {0, o.lr.value()}));
  }
  return cases;
}

std::vector<Case> asgd_cases() {
  std::vector<Case> cases;
  for (unsigned bits = 0; bits < 8; ++bits) {
    fuse::ASGDOptions o;
    o.maximize = bit(bits, 0);
    o.lr = rate(odd(bits), 0.05, 0.1);
    o.weight_decay = bit(bits, 1) ? 0.1 : 0.0;
    if (bit(bits, 2)) {
      o.lambd = 0.2;
      o.alpha = 0.6;
      o.t0 = 2.0;
    }
    cases.push_back(make_case<fuse::ASGD>(words({{bit(bits, 0), "maximize"},
                                                 {odd(bits), "tensor lr"},
                                                 {bit(bits, 1), "weight_decay"},
                                                 {bit(bits, 2), "averaging"}}),
                                          o, {0, o.lr.value(), 1}));
  }
  return cases;
}

std::vector<Case> ademamix_cases() {
  std::vector<Case> cases;
  for (unsigned bits = 0; bits < 8; ++bits) {
    fuse::AdEMAMixOptions o{.betas = {0.9, 0.999, 0.99}};
    o.maximize = bit(bits, 0);
    o.lr = rate(odd(bits), 0.01, 0.02);
    if (bit(bits, 1)) o.t_alpha = 4.0;
    if (bit(bits, 2)) o.t_beta3 = 5.0;
    if (bit(bits, 1)) o.weight_decay = 0.0;
    cases.push_back(
        make_case<fuse::AdEMAMix>(words({{bit(bits, 0), "maximize"},
                                         {odd(bits), "tensor lr"},
                                         {bit(bits, 1), "t_alpha"},
                                         {bit(bits, 2), "t_beta3"}}),
                                  o));
  }
  fuse::AdEMAMixOptions o{.lr = 0.05, .betas = {0.3, 0.9, 0.95}};
  o.alpha = 2.0;
  o.eps = 1e-2;
  o.weight_decay = 0.2;
  cases.push_back(make_case<fuse::AdEMAMix>("betas", o));
  return cases;
}

std::vector<Case> lamb_cases() {
  std::vector<Case> cases;
  for (unsigned bits = 0; bits < 8; ++bits) {
    fuse::LAMBOptions o;
    o.maximize = bit(bits, 0);
    o.lr = rate(odd(bits), 0.01, 0.02);
    o.bias_correction = !bit(bits, 1);
    if (bit(bits, 2)) o.weight_decay = 0.0;
    cases.push_back(
        make_case<fuse::LAMB>(words({{bit(bits, 0), "maximize"},
                                     {odd(bits), "tensor lr"},
                                     {bit(bits, 1), "no correction"},
                                     {bit(bits, 2), "no decay"}}),
                              o));
  }
  fuse::LAMBOptions o{.lr = 0.05, .betas = {0.3, 0.9}, .eps = 1e-2};
  o.weight_decay = 0.2;
  cases.push_back(make_case<fuse::LAMB>("betas", o));
  return cases;
}

std::vector<Case> lars_cases() {
  std::vector<Case> cases;
  for (unsigned bits = 0; bits < 16; ++bits) {
    fuse::LARSOptions o;
    o.maximize = bit(bits, 0);
    o.lr = rate(odd(bits), 20.0, 30.0);
    o.weight_decay = bit(bits, 1) ? 0.1 : 0.0;
    o.nesterov = bit(bits, 2);
    if (bit(bits, 3)) o.momentum = 0.0;
    if (bit(bits, 1)) {
      o.trust_coefficient = 4e-3;
      o.eps = 1e-2;
    }
    if (o.nesterov && bit(bits, 3)) continue;
    cases.push_back(
        make_case<fuse::LARS>(words({{bit(bits, 0), "maximize"},
                                     {odd(bits), "tensor lr"},
                                     {bit(bits, 1), "weight_decay"},
                                     {bit(bits, 2), "nesterov"},
                                     {bit(bits, 3), "no momentum"}}),
                              o));
  }
  return cases;
}

}  // namespace

const std::vector<OptimizerRow>& table() {
  static const std::vector<OptimizerRow> rows = {
      {"SGD", {"momentum_buffer"}, sgd_cases()},
      {"NAdam", {"exp_avg", "exp_avg_sq", "mu_product"}, nadam_cases()},
      {"RAdam",
       {"exp_avg", "exp_avg_sq"},
       decoupling_cases<fuse::RAdam, fuse::RAdamOptions>({})},
      {"Adamax", {"exp_avg", "exp_inf"}, adamax_cases()},
      {"Adagrad", {"sum"}, adagrad_cases()},
      {"Adadelta", {"square_avg", "acc_delta"}, adadelta_cases()},
      {"RMSprop",
       {"square_avg", "momentum_buffer", "grad_avg"},
       rmsprop_cases()},
      {"Rprop", {"prev", "step_size"}, rprop_cases()},
      {"ASGD", {"ax", "eta", "mu"}, asgd_cases()},
      {"AdEMAMix", {"exp_avg", "exp_avg_slow", "exp_avg_sq"}, ademamix_cases()},
      {"LAMB", {"exp_avg", "exp_avg_sq"}, lamb_cases(), true},
      {"LARS", {"momentum_buffer"}, lars_cases(), true},
  };
  return rows;
}

}  // namespace optimizer_rules
