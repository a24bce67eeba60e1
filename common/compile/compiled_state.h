#pragma once

#include <memory>
#include <source_location>

#include "fusebook/compile/compiled_function.h"
#include "fusebook/compile/one_thread.h"
#include "fusebook/programs/compile_options.h"
#include "fusebook/trace/recorder.h"

namespace fuse {

/// What a compiled function and its copies share, whatever the function is.
class CompiledState {
 public:
  CompiledState(CompileOptions options, std::source_location place);

  Function function;
  Recorder recorder;

  /// A thread in a compiled function. Throws Error if another one is there.
  class Entry {
   public:
    explicit Entry(CompiledState& state);
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    ~Entry();

   private:
    CompiledState& state_;
  };

  /// A call. Nothing recorded survives it, even if it throws.
  class Call {
   public:
    explicit Call(CompiledState& state);
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call();

   private:
    CompiledState& state_;
  };

 private:
  OneThread thread_;
};

std::shared_ptr<CompiledState> make_compiled_state(
    const CompileOptions& options, std::source_location place);

}  // namespace fuse
