#pragma once

#include <concepts>
#include <memory>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/support/undefined.h"
#include "fusebook/tensor/tensor.h"

namespace fuse {

/// Parameters with the names torch gives them, "0.weight".
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// A layer is anything that maps a tensor to a tensor.
template <class M>
concept IsLayer = std::copy_constructible<M> && requires(const M& m, Tensor t) {
  { m(t) } -> std::convertible_to<Tensor>;
};

/// One layer of a Sequential: a Linear, a Dropout, a function such as `relu`, a
/// lambda, another Sequential, or your own class. Besides the call operator for
/// a tensor, a class may have
///
///     NamedTensors named_parameters() const;
///     void train(bool mode) const;      // see Sequential::train
///     M clone() const;                  // else copies are copies of it
///     std::string name() const;         // for messages
///     std::string problem_with(const Tensor& input) const;  // "" if it fits
///
/// Copies of a layer share its parameters. A moved-from layer throws Error
/// naming what was called.
class Layer {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  template <class M>
    requires(!std::same_as<M, Layer> && IsLayer<M>)
  Layer(M module) {
    check_callable(module);
    self_ = std::make_shared<Holder<M>>(std::move(module));
  }
  /// A function, such as `relu`. Throws Error for a null pointer.
  // NOLINTNEXTLINE(google-explicit-constructor)
  Layer(Tensor (*function)(const Tensor&)) {
    check_callable(function);
    self_ = std::make_shared<Holder<Function>>(Function{function});
  }

  Tensor operator()(const Tensor& input) const { return self().run(input); }
  NamedTensors named_parameters() const { return self().named_parameters(); }
  void train(bool mode) const { self().train(mode); }
  Layer clone() const { return Layer(self().clone()); }
  std::string name() const { return self().name(); }
  std::string problem_with(const Tensor& input) const {
    return self().problem_with(input);
  }
  /// The object it was made from, or null if that has another type.
  template <class M>
  const M* as() const {
    const auto* const holder = dynamic_cast<const Holder<M>*>(&self());
    return holder == nullptr ? nullptr : &holder->module;
  }

 private:
  struct Function {
    Tensor (*call)(const Tensor&);
    Tensor operator()(const Tensor& input) const { return call(input); }
  };

  struct Any {
    Any() = default;
    Any(const Any&) = delete;
    Any& operator=(const Any&) = delete;
    virtual ~Any() = default;
    virtual Tensor run(const Tensor& input) const = 0;
    virtual NamedTensors named_parameters() const = 0;
    virtual void train(bool mode) const = 0;
    virtual std::shared_ptr<Any> clone() const = 0;
    virtual std::string name() const = 0;
    virtual std::string problem_with(const Tensor& input) const = 0;
  };

  template <class M>
  struct Holder final : Any {
    explicit Holder(M held) : module(std::move(held)) {}

    Tensor run(const Tensor& input) const override { return module(input); }
    NamedTensors named_parameters() const override {
      if constexpr (requires { module.named_parameters(); }) {
        return module.named_parameters();
      } else {
        return {};
      }
    }
    void train(bool mode) const override {
      if constexpr (requires { module.train(mode); }) module.train(mode);
    }
    std::shared_ptr<Any> clone() const override {
      if constexpr (requires { module.clone(); }) {
        return std::make_shared<Holder>(module.clone());
      } else {
        return std::make_shared<Holder>(module);
      }
    }
    std::string name() const override {
      if constexpr (requires { module.name(); }) {
        return module.name();
      } else {
        return "a function";
      }
    }
    std::string problem_with(const Tensor& input) const override {
      if constexpr (requires { module.problem_with(input); }) {
        return module.problem_with(input);
      } else {
        return "";
      }
    }

    M module;
  };

  explicit Layer(std::shared_ptr<Any> self) : self_(std::move(self)) {}

  Any& self(std::source_location call = std::source_location::current()) const {
    if (self_ == nullptr) refuse_moved_from(call, "the layer");
    return *self_;
  }

  std::shared_ptr<Any> self_;
};

}  // namespace fuse
