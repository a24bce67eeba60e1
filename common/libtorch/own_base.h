#pragma once

#include <c10/util/StringUtil.h>
#include <c10/util/Type.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/serialize.h>
#include <torch/serialize/archive.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <vector>

#include "fusebook/support/error.h"

namespace fuse::libtorch {

/// Two numbers, as LibTorch takes betas; and three.
using Pair = std::tuple<double, double>;
using Triple = std::tuple<double, double, double>;

namespace detail {

/// Writes what is defined.
template <class Value>
void write(::torch::serialize::OutputArchive& archive, const char* name,
           const Value& value) {
  if constexpr (std::same_as<Value, at::Tensor>) {
    if (!value.defined()) return;
  }
  archive.write(name, c10::IValue(value));
}

template <class Value>
void read(::torch::serialize::InputArchive& archive, const char* name,
          Value& value) {
  c10::IValue found;
  if (archive.try_read(name, found)) value = found.to<Value>();
}

/// So that options are not taken for those of another class, which may have the same
/// names. LibTorch reads its files as Python, where `class` is a keyword.
template <class Options>
void write_class(::torch::serialize::OutputArchive& archive) {
  write(archive, "class_name", c10::demangle(typeid(Options).name()));
}

template <class Options>
void check_class(::torch::serialize::InputArchive& archive) {
  const std::string own = c10::demangle(typeid(Options).name());
  std::string found = "options of another class";
  read(archive, "class_name", found);
  if (found == own) return;
  throw Error("cannot load the optimizer: the file has " + found + ", not " +
              own);
}

}  // namespace detail

/// Options of an optimizer that LibTorch does not have. `Derived::each(self, visit)`
/// calls visit(name, value) for each; one is called lr.
template <class Derived>
class OwnOptions : public ::torch::optim::OptimizerCloneableOptions<Derived> {
 public:
  void serialize(::torch::serialize::InputArchive& archive) override {
    detail::check_class<Derived>(archive);
    Derived::each(self(), [&](const char* name, auto& value) {
      detail::read(archive, name, value);
    });
  }
  void serialize(::torch::serialize::OutputArchive& archive) const override {
    detail::write_class<Derived>(archive);
    Derived::each(static_cast<const Derived&>(*this),
                  [&](const char* name, const auto& value) {
                    detail::write(archive, name, value);
                  });
  }
  double get_lr() const override {
    return static_cast<const Derived&>(*this).lr();
  }
  void set_lr(const double lr) override { self().lr(lr); }

 private:
  Derived& self() { return static_cast<Derived&>(*this); }
};

/// The states of a parameter, as `OwnOptions`; `step` counts its updates.
template <class Derived>
class OwnParamState
    : public ::torch::optim::OptimizerCloneableParamState<Derived> {
 public:
  void serialize(::torch::serialize::InputArchive& archive) override {
    auto& self = static_cast<Derived&>(*this);
    detail::read(archive, "step", self.step());
    Derived::each(self, [&](const char* name, at::Tensor& value) {
      detail::read(archive, name, value);
    });
  }
  void serialize(::torch::serialize::OutputArchive& archive) const override {
    const auto& self = static_cast<const Derived&>(*this);
    detail::write(archive, "step", self.step());
    Derived::each(self, [&](const char* name, const at::Tensor& value) {
      detail::write(archive, name, value);
    });
  }
};

/// What LibTorch's classes have besides their step.
template <class Options, class ParamState>
class OwnBase : public ::torch::optim::Optimizer {
 public:
  OwnBase(const std::vector<::torch::optim::OptimizerParamGroup>& groups,
          Options options)
      : ::torch::optim::Optimizer(std::vector<at::Tensor>{},
                                  std::make_unique<Options>(options)) {
    param_groups_.clear();
    for (const auto& group : groups) add_param_group(group);
  }

  /// Adds a group, which keeps its own options or takes the optimizer's. LibTorch
  /// may forget options of a kind that it does not know.
  void add_param_group(const ::torch::optim::OptimizerParamGroup& group) {
    ::torch::optim::Optimizer::add_param_group(group);
    if (!group.has_options()) return;
    param_groups_.back().set_options(group.options().clone());
  }

  void save(::torch::serialize::OutputArchive& archive) const override {
    ::torch::optim::serialize<ParamState, Options>(archive, *this);
  }
  void load(::torch::serialize::InputArchive& archive) override {
    ::torch::optim::serialize<ParamState, Options>(archive, *this);
  }
};

namespace kinds {

/// What all of them share; see torch_kinds.h.
template <class Ours, class TheirOptions, class State>
struct OwnKind {
  using Own = Ours;
  using Base = OwnBase<TheirOptions, State>;
  using Options = TheirOptions;
  using ParamState = State;

  static auto defaults() { return decltype(Own::defaults)(); }
  template <class Visit>
  static void options(const Options& o, Visit visit) {
    Options::each(o, [&](const char* name, const auto& value) {
      if constexpr (requires { std::get<0>(value); }) {
        int i = 0;
        const auto visit_next = [&](double each) {
          visit(c10::str(name, "[", i++, "]"), each);
        };
        std::apply([&](auto... each) { (visit_next(each), ...); }, value);
      } else {
        visit(name, value);
      }
    });
  }
  static bool keeps_states(const Options& /*o*/) { return true; }
  template <class Visit>
  static void states(ParamState& state, const Options& /*o*/, Visit visit) {
    ParamState::each(state, visit);
  }
};

}  // namespace kinds
}  // namespace fuse::libtorch
