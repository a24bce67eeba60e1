#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace fuse {

template <class Signature>
class FunctionRef;

/// A reference to something callable, for parameters that are called and not
/// kept: no memory, one indirect call. What it refers to must outlive it, so a
/// lambda is passed on in the call or has a name of its own.
template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  /// A function.
  constexpr FunctionRef(  // NOLINT(google-explicit-constructor)
      Result (*function)(Arguments...)) noexcept
      : call_([](Target target, Arguments... arguments) -> Result {
          const auto typed =
              reinterpret_cast<Result (*)(Arguments...)>(target.function);
          return typed(std::forward<Arguments>(arguments)...);
        }) {
    target_.function = reinterpret_cast<void (*)()>(function);
  }

  /// An object with a call operator.
  template <class Function>
    requires(std::is_class_v<std::remove_reference_t<Function>> &&
             !std::is_same_v<std::remove_cvref_t<Function>, FunctionRef> &&
             std::is_invocable_r_v<Result, Function&, Arguments...>)
  constexpr FunctionRef(  // NOLINT(google-explicit-constructor)
      Function&& function) noexcept
      : call_([](Target target, Arguments... arguments) -> Result {
          using Object = std::remove_reference_t<Function>;
          Object& object = *static_cast<Object*>(target.object);
          if constexpr (std::is_void_v<Result>) {
            object(std::forward<Arguments>(arguments)...);
          } else {
            return object(std::forward<Arguments>(arguments)...);
          }
        }) {
    target_.object =
        const_cast<void*>(static_cast<const void*>(std::addressof(function)));
  }

  Result operator()(Arguments... arguments) const {
    return call_(target_, std::forward<Arguments>(arguments)...);
  }

 private:
  union Target {
    void* object = nullptr;
    void (*function)();
  };

  Target target_;
  Result (*call_)(Target target, Arguments... arguments);
};

}  // namespace fuse
