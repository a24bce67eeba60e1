#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/fusebook.h"

// The table of undefined_objects_test, in parts. `table.py` checks that every
// public function is in it that may meet an object in which nothing is.
namespace undefined_objects {

/// What a function does with such an object.
struct Row {
  /// Class and function, as the headers have them.
  std::string name;
  std::function<void()> call;
  /// How the message of its Error begins; without one, with the name.
  std::string says = "";
  /// There is an answer instead, which the call checks.
  bool answers = false;
};
using Rows = std::vector<Row>;

inline Row answer(std::string name, std::function<void()> call) {
  return {std::move(name), std::move(call), "", true};
}

/// A tensor in which nothing is, of each kind in turn.
fuse::Tensor undefined();

/// What is left of an object that was moved away.
template <class T>
T left_of(T object) {
  [[maybe_unused]] const T taken = std::move(object);
  return object;  // NOLINT(bugprone-use-after-move,performance-no-automatic-move)
}

/// Keeps a value from being thrown away unseen.
template <class T>
void use(const T& /*value*/) {}

Rows rows_of_tensors();
Rows rows_of_functions_of_tensors();
Rows rows_of_lists();
Rows rows_of_compiled_functions();
Rows rows_of_models();
Rows rows_of_optimizers();
Rows rows_of_scalers();
Rows rows_of_schedulers();
Rows rows_of_tools();

}  // namespace undefined_objects
