#pragma once

#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "fusebook/device/device.h"
#include "fusebook/programs/compile_options.h"
#include "fusebook/reports/counters.h"
#include "fusebook/reports/guard_report.h"
#include "fusebook/trace/facts.h"
#include "fusebook/trace/recorder.h"

namespace fuse {

class Request;
class SplitProgram;
enum class KernelLimit;
struct CompiledProgram;
struct FunctionKernels;

/// One event in a call of a function, for reports.
struct CallEvent {
  const CompiledProgram* launched = nullptr;
  std::string text;  ///< instead: a graph break, or why there was no kernel
};

/// Finds or makes the kernel for each program it is given, and launches it.
class Function final : public Executor {
 public:
  /// `place` is where it was compiled; what runs eagerly has none.
  explicit Function(CompileOptions options, std::source_location place = {});
  ~Function() override;

  /// Starts a call: what it executes before a graph break is its first segment.
  void begin();
  void execute(const Program& program) override;
  /// Launches the last kernel again with its current table. Throws Error if
  /// nothing was launched.
  void relaunch();
  void graph_break(const std::string& why) override;
  void count_outside(const char* what, int launches,
                     std::int64_t bytes) override;
  Facts* facts() override { return &facts_; }
  const Function* function() const override { return this; }

  /// Starts a call that becomes part of the current recording.
  void begin_inlined(const Recorder& outer);
  /// "function step in file:line", of which the last call became a part; empty
  /// if none.
  const std::string& inlined_into() const { return inlined_into_; }
  /// Throws Error because another thread is in a call.
  [[noreturn]] void refuse_threads() const;

  // -- for CUDA graphs, see cuda_graph.h

  /// The device of the last launch. Throws Error if there was none.
  Device device() const;
  /// Returns the kernel and table of an earlier call for a program whose launch
  /// is about to be captured. Throws Error if either does not exist yet, or if
  /// the graph would freeze the value of a number.
  const CompiledProgram& bind_captured(const Program& program);
  /// Counts a call made by a graph that launched this kernel.
  void count_replay(const CompiledProgram& launched, const Counters& launches);
  /// What a launch of a kernel with its current table counts as.
  static Counters counted(const CompiledProgram& compiled);

  const Counters& counters() const { return counters_; }
  const CompileOptions& options() const { return options_; }
  /// Where it was compiled.
  const std::source_location& place() const { return place_; }
  /// "function step in file:line".
  std::string where() const;
  /// Generated source of the latest kernel; empty before the first call.
  std::string output_code() const;
  /// What the newest kernel fuses, in a few lines; see summary(Plan).
  std::string summary() const;
  /// The events of the last call, in order.
  const std::vector<CallEvent>& last_call() const { return last_call_; }
  std::int64_t last_launches() const {
    return counters_.launches - launches_before_;
  }
  bool was_called() const { return was_called_; }
  /// Why each recompile happened, the oldest first.
  const std::vector<RecompileReport>& recompile_reports() const {
    return reports_;
  }
  /// Eager operations are interpreted one by one: their kernels do not count as
  /// compilations, and nothing is reported.
  void set_eager() { eager_ = true; }

 private:
  struct Choice;  // what runs a program

  Choice choose(const Request& request, int segment);
  void run(const Request& request, Choice choice);
  void run_parts(SplitProgram& split, const Program& program);
  void end_segment();
  CompiledProgram& compile(const Request& request, int segment);
  bool is_recompile(const Request& request, int segment) const;
  RecompileReport explain_for(const Request& request, int segment);
  void prepare_recompile(const RecompileReport& why, const Request& request);
  Plan plan_for(const Request& request, int segment);
  void observe(const Program& program, const Plan& plan) const;
  void run_eagerly(const Request& request, KernelLimit limit);
  bool bind(CompiledProgram& compiled, const Program& program);
  void launch(CompiledProgram& compiled);
  void count_break(const std::string& why, const char* advice);
  void refuse_scheduled_numbers(const Program& program) const;
  void refuse_parts(const Program& program) const;
  void refuse_given_numbers(const CompiledProgram& known,
                            const Program& program) const;
  void count_uploads(bool rebuilt) {
    if (rebuilt) count({.uploads = 1});
  }
  void count(const Counters& more);
  static std::uint64_t next_id();

  CompileOptions options_;
  std::source_location place_;
  bool eager_ = false;
  int segment_ = 0;   // in the current call
  int segments_ = 0;  // the largest number in any call
  Counters counters_;
  bool was_called_ = false;
  std::uint64_t id_ = next_id();
  std::string inlined_into_;
  std::uint64_t inlined_id_ = 0;      // of the enclosing function
  std::int64_t launches_before_ = 0;  // before the current call
  std::vector<CallEvent> last_call_;
  std::string break_;  // the text of a graph break until its launch is over
  std::vector<RecompileReport> reports_;
  Facts facts_;  // of the current call
  std::unique_ptr<FunctionKernels> kernels_;
  std::unique_ptr<Function> eagerly_;  // runs programs without a kernel
  bool warned_of_values_ = false;
  bool warned_of_operations_ = false;
};

}  // namespace fuse
