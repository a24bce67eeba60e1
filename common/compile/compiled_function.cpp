#include "fusebook/compile/compiled_function.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>

#include "fusebook/codegen/emit_kernel.h"
#include "fusebook/codegen/keep_source.h"
#include "fusebook/codegen/print_plan.h"
#include "fusebook/compile/function_kernels.h"
#include "fusebook/compile/plan_text.h"
#include "fusebook/compile/run_eagerly.h"
#include "fusebook/device/backend.h"
#include "fusebook/ir/plan_reuse.h"
#include "fusebook/programs/make_kernel.h"
#include "fusebook/programs/plan_observer.h"
#include "fusebook/programs/trace_launch.h"
#include "fusebook/reports/log.h"
#include "fusebook/reports/recompile.h"
#include "fusebook/runtime/parallel.h"
#include "fusebook/support/error.h"
#include "fusebook/support/source_place.h"
#include "fusebook/support/warning.h"

namespace fuse {
namespace {

Target target_of(const Program& program) {
  return backend_of(device_of(program)).target();
}

bool bind_table(CompiledProgram& compiled, const Program& program) {
  return bind_table(compiled.table, *compiled.kernel, compiled.plan, program,
                    thread_count());
}

bool touches_elements(const Plan& plan) {
  return std::any_of(
      plan.bodies.begin(), plan.bodies.end(),
      [](const Body& body) { return body.bytes_per_element() > 0; });
}

}  // namespace

struct Function::Choice {
  CompiledProgram* compiled = nullptr;
  KernelLimit limit = KernelLimit::none;
};

Function::Function(CompileOptions options, std::source_location place)
    : options_(std::move(options)),
      place_(place),
      kernels_(std::make_unique<FunctionKernels>(options_.policy)) {}

Function::~Function() = default;

std::uint64_t Function::next_id() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

void Function::begin() {
  was_called_ = true;
  segment_ = 0;
  launches_before_ = counters_.launches;
  inlined_into_.clear();
  kernels_->store.begin_call();
  facts_.clear();
  last_call_.clear();
  break_.clear();
}

void Function::begin_inlined(const Recorder& outer) {
  const Function* const into = outer.function();
  if (into == nullptr || into == this) return;  // recursion, or a capture
  // Usually it is the same function as before, whose name is known.
  if (inlined_into_.empty() || inlined_id_ != into->id_) {
    begin();
    inlined_into_ = into->where();
    inlined_id_ = into->id_;
  }
  count({.inlined = 1});
}

void Function::refuse_threads() const {
  throw Error(where() +
              " is already being called by another thread; one thread at a "
              "time may call it: compile a function for each thread");
}

void Function::execute(const Program& program) {
  const Request request(program);
  if (SplitProgram* const split = kernels_->splits.find(request)) {
    return run_parts(*split, program);
  }
  CompiledProgram* known = kernels_->store.find(request);
  const bool fits = known != nullptr && bind(*known, program);
  if (!fits && !eager_) {
    if (SplitProgram* const split = kernels_->splits.add(request)) {
      return run_parts(*split, program);
    }
  }
  if (fits) {
    launch(*known);
    end_segment();
  } else {
    run(request, choose(request, segment_));
  }
}

// Every kernel is ready before the first part stores anything.
void Function::run_parts(SplitProgram& split, const Program& program) {
  const auto parts = split.parts();
  split.make_parts(program);
  std::vector<Choice> choices;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const Request request(split.part(k));
    choices.push_back(choose(request, segment_ + int(k)));
  }
  for (std::size_t k = 0; k < parts.size(); ++k) {
    if (k + 1 < parts.size()) {
      count_break(parts[k + 1].why,
                  "give each tensor its own memory, or compile without "
                  "fullgraph");
    }
    split.read_numbers(program, k);
    run(Request(split.part(k)), choices[k]);
  }
}

// The kernel that serves a program, or the limit that denies it one.
Function::Choice Function::choose(const Request& request, int segment) {
  if (request.program.stores().empty()) return {};
  if (CompiledProgram* const known = kernels_->store.find(request)) {
    return {known};
  }
  facts_.collect();
  if (!eager_) {
    if (CompiledProgram* const fits = kernels_->store.adapt(request, facts_)) {
      return {fits};
    }
    const KernelLimit limit =
        limit_for(options_.policy, kernels_->store, request, segment);
    if (limit != KernelLimit::none) return {nullptr, limit};
  }
  return {&compile(request, segment)};
}

void Function::run(const Request& request, Choice choice) {
  if (choice.compiled != nullptr) {
    count_uploads(bind_table(*choice.compiled, request.program));
    launch(*choice.compiled);
  } else if (choice.limit != KernelLimit::none) {
    run_eagerly(request, choice.limit);
  }
  end_segment();
}

void Function::end_segment() {
  segments_ = std::max(segments_, ++segment_);
  // The launch caused by a break was recorded before the break.
  if (!break_.empty()) last_call_.push_back({nullptr, std::move(break_)});
  break_.clear();
}

CompiledProgram& Function::compile(const Request& request, int segment) {
  const bool again = !eager_ && is_recompile(request, segment);
  RecompileReport why;
  if (again) {
    why = explain_for(request, segment);
    prepare_recompile(why, request);
  }
  auto made = std::make_unique<CompiledProgram>();
  made->hash = request.hash;
  made->program = request.program;
  made->facts = facts_;
  made->plan = plan_for(request, segment);
  made->segment = segment;
  made->new_operations = !eager_ && kernels_->store.has_new_operations(request);
  made->counts_as_launch = !eager_ || touches_elements(made->plan);
  if (eager_) {
    keep_quick_source(made->plan);
  } else {
    observe(request.program, made->plan);
  }
  made->kernel =
      make_kernel(made->plan, options_.backend, device_of(request.program));
  if (!eager_) count({.compilations = 1, .recompiles = again ? 1 : 0});
  if (again) reports_.push_back(std::move(why));
  return kernels_->store.add(std::move(made));
}

// False for the first kernel of a segment between graph breaks.
bool Function::is_recompile(const Request& request, int segment) const {
  return segment < segments_ || kernels_->store.has_moved(request);
}

RecompileReport Function::explain_for(const Request& request, int segment) {
  facts_.collect();
  return explain(options_.name, place_, kernels_->store, request, facts_,
                 segment);
}

void Function::prepare_recompile(const RecompileReport& why,
                                 const Request& request) {
  if (options_.policy == Policy::fail_on_recompile) throw RecompileError(why);
  write_log(Log::recompiles, to_string(why), why.places());
  for (const auto& known : kernels_->store.programs()) {
    kernels_->promotion.promote(known->plan, request.program, request.pieces());
  }
}

// Its kernel also gets the other bodies of programs that it may come to share a
// launch with: groups of parameters come and go.
Plan Function::plan_for(const Request& request, int segment) {
  const auto may_bake = [this](const Origin& origin) {
    return kernels_->promotion.may_bake(origin);
  };
  Plan plan = make_plan(request.program, request.pieces(), may_bake);
  if (eager_) return plan;
  for (const CompiledProgram* known :
       kernels_->store.companions(request, segment)) {
    add_bodies(plan, known->plan, may_bake);
  }
  return plan;
}

void Function::observe(const Program& program, const Plan& plan) const {
  if (log_enabled(Log::graph)) {
    write_log(Log::graph, graph_text(options_.name, program, plan));
  }
  if (log_enabled(Log::output_code)) {
    write_log(Log::output_code, "\n" + code_text(plan, target_of(program)),
              code_places(plan));
  }
  keep_source(plan);
  observe_plan(plan);
}

void Function::run_eagerly(const Request& request, KernelLimit limit) {
  bool& warned =
      limit == KernelLimit::values ? warned_of_values_ : warned_of_operations_;
  if (!warned) {
    warn(limit_warning(limit, explain_for(request, segment_)));
    warned = true;
  }
  if (eagerly_ == nullptr) {
    eagerly_ = std::make_unique<Function>(
        CompileOptions{.name = options_.name, .backend = Backend::interpreted});
    eagerly_->set_eager();
  }
  const Counters before = eagerly_->counters();
  replay(request.program, *eagerly_);
  last_call_.push_back({nullptr, limit_event(limit)});
  // the process has counted them already
  counters_ += eagerly_->counters() - before;
}

// False for lists that cannot share one launch, although earlier ones could.
bool Function::bind(CompiledProgram& compiled, const Program& program) {
  try {
    count_uploads(bind_table(compiled, program));
    return true;
  } catch (const Error&) {
    if (eager_) throw;
    return false;
  }
}

void Function::launch(CompiledProgram& compiled) {
  const bool launches =
      compiled.counts_as_launch && !compiled.table.rows().empty();
  compiled.kernel->launch(compiled.table);
  kernels_->store.use(compiled, segment_);
  if (launches) trace_launch(compiled);
  if (launches && !eager_) last_call_.push_back({&compiled, ""});
  count(counted(compiled));
}

Counters Function::counted(const CompiledProgram& compiled) {
  const Table& table = compiled.table;
  if (!compiled.counts_as_launch || table.rows().empty()) {
    return {.bytes_moved = table.bytes()};
  }
  return {.launches = compiled.kernel->launches(table),
          .bytes_moved = table.bytes(),
          .reduction_phases = table.phases() - 1};
}

void Function::relaunch() {
  CompiledProgram* const latest = kernels_->store.latest();
  if (latest == nullptr) {
    throw Error("function " + options_.name +
                " was never called, so there is nothing to relaunch");
  }
  latest->kernel->launch(latest->table);
  count(counted(*latest));
}

void Function::graph_break(const std::string& why) {
  count_break(why,
              "move the access out of the compiled function or compile it "
              "without fullgraph");
}

void Function::count_break(const std::string& why, const char* advice) {
  if (options_.fullgraph) {
    throw Error(fmt::format("graph break in function {} ({}): {}; {}",
                            options_.name, at(place_), why, advice));
  }
  count({.graph_breaks = 1});
  break_ = "graph break: " + why;
  write_log(Log::graph,
            "graph break in function " + options_.name + ": " + why);
}

void Function::count_outside(const char* what, int launches,
                             std::int64_t bytes) {
  last_call_.push_back(
      {nullptr,
       fmt::format("{} of {}", launches == 1 ? "launch" : "launches", what)});
  count({.launches = launches, .bytes_moved = bytes});
}

std::string Function::output_code() const {
  const CompiledProgram* const newest = kernels_->store.newest();
  return newest == nullptr
             ? ""
             : code_text(newest->plan, target_of(newest->program));
}

std::string Function::summary() const {
  const CompiledProgram* const newest = kernels_->store.newest();
  return newest == nullptr ? "" : fuse::summary(newest->plan);
}

void Function::count(const Counters& more) {
  counters_ += more;
  add_to_process(more);
}

}  // namespace fuse
