#pragma once

#include <cstddef>
#include <source_location>
#include <string>

#include "fusebook/tensor/tensor.h"
#include "fusebook/trace/operands.h"

namespace fuse {

/// Active while the function of a `foreach_map` runs. The function must only
/// describe what to do with one element: reading data, or working on whole
/// lists, is an error that names the call.
class MapScope {
 public:
  MapScope(const Callee& callee, Operands operands);
  MapScope(const MapScope&) = delete;
  MapScope& operator=(const MapScope&) = delete;
  ~MapScope();

  /// The call whose function is running on this thread, or nullptr.
  static const MapScope* current();

  /// Throws Error because the function read the data of `tensor`.
  [[noreturn]] void refuse_read(const TensorImpl& tensor) const;
  /// Throws Error because the function called `what`, which takes whole lists.
  [[noreturn]] void refuse_list_call(const std::string& what,
                                     std::source_location place) const;

  /// "foreach_map at file:line".
  std::string call() const;
  /// "operand 2 (grads)".
  std::string operand(std::size_t k) const;

  /// While it lives, the library works on behalf of the function, with no
  /// restrictions.
  class Pause {
   public:
    Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    ~Pause();
    /// The paused call, or nullptr.
    const MapScope* scope() const { return scope_; }

   private:
    const MapScope* scope_;
  };

 private:
  const Callee& callee_;
  Operands operands_;
  const MapScope* previous_;
};

}  // namespace fuse
