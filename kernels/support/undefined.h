#pragma once

#include <source_location>
#include <string>

namespace fuse {

/// The function containing a place, as a user calls it: "Tensor::item",
/// "empty_like".
std::string name_of_call(const std::source_location& place);

/// Throws Error naming the call: "empty_like: the tensor is undefined".
[[noreturn]] void refuse_undefined(const std::source_location& call,
                                   const char* what = "the tensor");
/// The same: "TensorList::size: the list was moved from".
[[noreturn]] void refuse_moved_from(const std::source_location& call,
                                    const char* what);
/// The same: "blocked_autorange: the function is empty".
[[noreturn]] void refuse_empty(const std::source_location& call,
                               const char* what);

/// Throws Error naming the caller if there is no function to call; `f` may be a
/// std::function, a function pointer or a lambda.
template <class F>
void check_callable(
    const F& f, const char* what = "the function",
    std::source_location call = std::source_location::current()) {
  if constexpr (requires { f.target_type(); }) {  // a std::function
    if (!f) refuse_empty(call, what);
  } else if constexpr (requires { *f == f; }) {
    if (f == nullptr) refuse_empty(call, what);
  }
}

}  // namespace fuse
