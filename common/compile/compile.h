#pragma once

#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>

#include "fusebook/compile/compiled_function.h"
#include "fusebook/compile/compiled_state.h"
#include "fusebook/compile/fusion_report.h"
#include "fusebook/support/undefined.h"
#include "fusebook/trace/recorder.h"

namespace fuse {

/// A function whose list operations are fused. Every call runs the function
/// once, records its operations on lists of tensors, and launches them as one
/// kernel, which is generated and compiled at the first call and again only if
/// a guard fails. Everything else in the function runs as usual. A call inside
/// another compiled function becomes part of that one, whose counters count its
/// effects; its own counters count the call as inlined. Only one thread at a
/// time may call it: a concurrent call throws Error. So does any call on a
/// moved-from object, naming what was called.
template <class F>
class Compiled {
 public:
  Compiled(F body, const CompileOptions& options, std::source_location place)
      : function_(std::move(body)),
        state_(make_compiled_state(options, place)) {}

  /// Calls the function, records its operations on lists and launches them;
  /// returns what the function returns. Passes on any exception of the
  /// function.
  template <class... Args>
  decltype(auto) operator()(Args&&... args) {
    CompiledState& own = self();
    const CompiledState::Entry entry(own);
    if (const Recorder* const outer = Recorder::current()) {
      own.function.begin_inlined(*outer);
      return function_(std::forward<Args>(args)...);
    }
    const CompiledState::Call call(own);
    if constexpr (std::is_void_v<std::invoke_result_t<F&, Args...>>) {
      run(std::forward<Args>(args)...);
      own.recorder.finish();
    } else {
      decltype(auto) result = run(std::forward<Args>(args)...);
      own.recorder.finish();
      return result;
    }
  }

  /// Launches the latest kernel again with the same arguments, without running
  /// the function: the device side of a call alone, for measurements. Throws
  /// Error before the first call.
  void relaunch() {
    CompiledState& own = self();
    const CompiledState::Entry entry(own);
    own.function.relaunch();
  }

  /// The effects of all calls of this function so far.
  const Counters& counters() const { return self().function.counters(); }
  /// Why each recompile happened, the oldest first; the log channel
  /// `recompiles` shows the same.
  const std::vector<RecompileReport>& recompile_reports() const {
    return self().function.recompile_reports();
  }
  /// The generated part of the latest kernel's source.
  std::string output_code() const { return self().function.output_code(); }
  /// What that kernel fuses: operations by rate, arrays loaded and stored.
  std::string summary() const { return self().function.summary(); }
  /// What the last call fused and, if something was not fused, why.
  std::string report() const { return fusion_report(self().function); }
  /// Where it was compiled.
  std::source_location place() const { return self().function.place(); }
  /// What finds, makes and launches its kernels; it lives as long as this or
  /// the pointer.
  std::shared_ptr<Function> function() const {
    Function* const function = &self().function;
    return {state_, function};
  }
  /// See assert_fused.
  void check_fused(std::int64_t launches, std::source_location place) const {
    check_launches(self().function, launches, place);
  }

 private:
  CompiledState& self(
      std::source_location call = std::source_location::current()) const {
    if (state_ == nullptr) refuse_moved_from(call, "the compiled function");
    return *state_;
  }

  template <class... Args>
  decltype(auto) run(Args&&... args) {
    const Recording recording(state_->recorder);
    return function_(std::forward<Args>(args)...);
  }

  F function_;
  std::shared_ptr<CompiledState> state_;  // copies share kernels and counters
};

/// Compiles `function`, as torch.compile does for an optimizer's step:
///
///     auto step = compile([&] { opt.step(); });
///     step();
///
/// Throws Error for an empty std::function or a null pointer.
template <class F>
auto compile(F function, const CompileOptions& options = {},
             std::source_location place = std::source_location::current()) {
  check_callable(function);
  return Compiled<F>(std::move(function), options, place);
}

/// Throws Error unless the last call of a compiled function made exactly
/// `launches` launches; the message is its report, which says why.
template <class F>
void assert_fused(
    const Compiled<F>& function, std::int64_t launches = 1,
    std::source_location place = std::source_location::current()) {
  function.check_fused(launches, place);
}

}  // namespace fuse
