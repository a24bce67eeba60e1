#pragma once

#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>

#include "fusebook/compile/compiled_function.h"
#include "fusebook/compile/fusion_report.h"
#include "fusebook/compile/one_thread.h"
#include "fusebook/support/undefined.h"
#include "fusebook/trace/recorder.h"

namespace fuse {

/// A function whose list operations are fused. Every call runs the function
/// once, records what it does to lists of tensors, and launches that as one
/// kernel, which is generated and compiled at the first call and again only
/// when a guard fails. Everything else in the function just runs. A call inside
/// another compiled function becomes part of that one, which counts what it
/// causes; its own counters count the call as inlined. One thread at a time: a
/// call while another thread is in one throws Error. One that was moved from
/// throws Error, which names what was called.
template <class F>
class Compiled {
 public:
  Compiled(F body, CompileOptions options, std::source_location place)
      : function_(std::move(body)),
        state_(std::make_shared<State>(std::move(options), place)) {}

  /// Calls the function, records what it does to lists and launches that; returns what
  /// the function returns. Throws Error for what the function throws it for.
  template <class... Args>
  decltype(auto) operator()(Args&&... args) {
    State& own = self();
    const Entry entry(own);
    if (const Recorder* const outer = Recorder::current()) {
      own.function.begin_inlined(*outer);
      return function_(std::forward<Args>(args)...);
    }
    const Call call(own);
    if constexpr (std::is_void_v<std::invoke_result_t<F&, Args...>>) {
      run(std::forward<Args>(args)...);
      own.recorder.finish();
    } else {
      decltype(auto) result = run(std::forward<Args>(args)...);
      own.recorder.finish();
      return result;
    }
  }

  /// Launches the newest kernel again on what it was given last, without
  /// running the function: a call without its host side, for measurements.
  /// Throws Error before the first call.
  void relaunch() {
    State& own = self();
    const Entry entry(own);
    own.function.relaunch();
  }

  /// What calls of this function have caused so far.
  const Counters& counters() const { return self().function.counters(); }
  /// Why it was compiled again, each time, the oldest first; the channel
  /// `recompiles` logs the same.
  const std::vector<RecompileReport>& recompile_reports() const {
    return self().function.recompile_reports();
  }
  /// The generated part of the newest kernel's source.
  std::string output_code() const { return self().function.output_code(); }
  /// What that kernel fuses: operations by rate, arrays loaded and stored.
  std::string summary() const { return self().function.summary(); }
  /// What the last call fused and, where something was not, why.
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
  struct State {
    State(CompileOptions options, std::source_location place)
        : function(std::move(options), place), recorder(function, true) {}
    Function function;
    Recorder recorder;
    OneThread thread;
  };

  struct Entry {
    explicit Entry(State& s) : state(s) {
      if (!state.thread.enter()) state.function.refuse_threads();
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    ~Entry() { state.thread.leave(); }
    State& state;
  };

  // Nothing recorded survives a call, also when it ends with an exception.
  struct Call {
    explicit Call(State& s) : state(s) { state.function.begin(); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call() { state.recorder.abandon(); }
    State& state;
  };

  State& self(
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
  std::shared_ptr<State> state_;  // copies share kernels and counters
};

/// Compiles `function`, as torch.compile does for an optimizer's step:
///
///     auto step = compile([&] { opt.step(); });
///     step();
///
/// Throws Error for a std::function or a pointer that holds none.
template <class F>
auto compile(F function, const CompileOptions& options = {},
             std::source_location place = std::source_location::current()) {
  check_callable(function);
  return Compiled<F>(std::move(function), options, place);
}

/// Throws Error unless the last call of a compiled function made `launches`
/// launches; the message is its report, which says why.
template <class F>
void assert_fused(
    const Compiled<F>& function, std::int64_t launches = 1,
    std::source_location place = std::source_location::current()) {
  function.check_fused(launches, place);
}

}  // namespace fuse
