#include "function.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "codegen.h"
#include "describe.h"
#include "devices.h"
#include "error.h"
#include "fusion_report.h"
#include "gpu_kernel.h"
#include "keep_source.h"
#include "log.h"
#include "parallel.h"
#include "provenance.h"
#include "record_kernel.h"
#include "replay.h"
#include "trace.h"
#include "warning.h"

namespace fuse {
namespace {

bool same_bits(double a, double b) {
  return std::memcmp(&a, &b, sizeof(double)) == 0;
}

// Says once in a process why steps run interpreted.
std::shared_ptr<Kernel> without_compiler(const Plan& plan,
                                         const std::string& why) {
  static std::once_flag said;
  std::call_once(said, [&] {
    std::fprintf(stderr, "fusebook: steps run interpreted: %s\n", why.c_str());
  });
  return make_interpreter(plan);
}

// Lists in the memory of a GPU leave no choice.
std::shared_ptr<Kernel> make_kernel(const Plan& plan, Backend backend,
                                    const Device& device) {
  // The simulated GPU reaches the host's memory as if it were its own.
  const bool simulated = device.is_cpu() && backend == Backend::simulated;
  if (!device.is_cpu() || simulated) {
    const Device gpu = simulated ? Device{Device::Kind::cuda_sim, 0} : device;
    return make_gpu_kernel(generate_gpu_source(plan), gpu_of(gpu));
  }
  if (backend == Backend::interpreted) return make_interpreter(plan);
  try {
    return make_cpu_kernel(generate_cpu_source(plan));
  } catch (const NoCompiler& error) {
    return without_compiler(plan, error.what());
  }
}

Target target_of(const Program& program) {
  return device_of(program).is_cpu() ? Target::cpu : Target::gpu;
}

bool touches_elements(const Plan& plan) {
  return std::any_of(
      plan.bodies.begin(), plan.bodies.end(),
      [](const Body& body) { return body.bytes_per_element() > 0; });
}

std::vector<std::string> operations(const Body& body) {
  std::vector<std::string> names;
  for (const BodyNode& node : body.nodes) {
    if (node.arity == 0 || node.rate != Rate::element) continue;
    names.emplace_back(name_of(node.op));
  }
  return names;
}

void trace(const CompiledProgram& compiled) {
  LaunchTrace* const trace = LaunchTrace::current();
  if (trace == nullptr) return;
  LaunchRecord record;
  record.bytes = compiled.table.bytes();
  for (const Body& body : compiled.plan.bodies) {
    record.bodies.push_back(operations(body));
  }
  const Launch launch = compiled.table.launch();
  std::int64_t tensors = 0;
  for (const Row& row : compiled.table.rows()) {
    if (row.entry < tensors) continue;  // another line of the same tensor
    ++tensors;
    const Body& body = compiled.plan.bodies[std::size_t(row.body)];
    LaunchRecord::Row traced;
    traced.body = row.body;
    for (std::size_t s = 0; s < body.slots.size(); ++s) {
      if (body.slots[s].rate != Rate::element) continue;
      traced.addresses.push_back(launch.pointers[row.pointers + i64(s)]);
    }
    record.rows.push_back(std::move(traced));
  }
  trace->add(std::move(record));
}

std::string limit_text(const RecompileReport& why) {
  std::string moved;
  for (const std::string& path : why.moved()) {
    moved += (moved.empty() ? "" : ", ") + path;
  }
  return "function " + why.where() + " has " +
         std::to_string(specialization_limit) + " kernels for values of " +
         moved +
         "; for other values it runs eagerly from now on. Make it a 0-d "
         "tensor, or compile with Policy::promote";
}

// Made for the same operations, whatever the numbers.
bool alike(const CompiledProgram& known, std::uint64_t hash,
           const Program& program) {
  return known.hash == hash && known.program.same_structure(program);
}

}  // namespace

Device device_of(const Program& program) {
  for (const SlotInfo& slot : program.slots()) {
    if (slot.memory != 0) return device_of_memory(slot.memory);
  }
  return cpu_device;
}

void Function::begin() {
  was_called_ = true;
  segment_ = 0;
  launches_before_ = counters_.launches;
  last_call_.clear();
  break_.clear();
}

CompiledProgram* Function::find(std::uint64_t hash, const Program& program) {
  for (std::size_t i = compiled_.size(); i-- > 0;) {
    CompiledProgram& known = *compiled_[i];
    if (alike(known, hash, program) && known.plan.matches(program)) {
      return &known;
    }
  }
  return nullptr;
}

bool Function::may_bake(const Origin& origin) const {
  if (origin.moves && options_.policy == Policy::promote) return false;
  if (origin.name != nullptr) return !promoted_names_;
  return std::none_of(
      promoted_.begin(), promoted_.end(),
      [&](const Origin& known) { return same_parameter(known, origin); });
}

// What moved becomes an input from now on. Where that is a hyper-parameter the
// others come along: schedules move several, and not all from the same call on.
void Function::promote(const CompiledProgram& known, const Program& program) {
  for (const Guard& guard : known.plan.guards) {
    const auto scalar = std::size_t(guard.scalar);
    if (same_bits(program.scalars()[scalar].value, guard.value)) continue;
    const Origin& origin = known.program.scalars()[scalar].origin;
    if (!may_bake(origin)) continue;
    if (origin.name != nullptr) {
      promoted_names_ = true;
    } else {
      promoted_.push_back(origin);
    }
  }
}

// False for the first kernel of a segment between graph breaks.
bool Function::is_recompile(std::uint64_t hash, const Program& program) const {
  return segment_ < segments_ ||
         std::any_of(
             compiled_.begin(), compiled_.end(),
             [&](const auto& known) { return alike(*known, hash, program); });
}

// Why no earlier kernel fits.
RecompileReport Function::report(std::uint64_t hash,
                                 const Program& program) const {
  RecompileReport why = {
      options_.name,
      {short_path(options_.place.file_name()), options_.place.line()},
      {},
      {}};
  for (std::size_t i = compiled_.size(); i-- > 0;) {
    const CompiledProgram& known = *compiled_[i];
    if (!alike(known, hash, program)) continue;
    add_failures(why, known.plan, known.program, program);
  }
  if (why.failures.empty() && !compiled_.empty()) {
    add_changes(why, compiled_.back()->program, program);
  }
  return why;
}

void Function::prepare_recompile(const RecompileReport& why, std::uint64_t hash,
                                 const Program& program) {
  if (options_.policy == Policy::fail_on_recompile) throw RecompileError(why);
  write_log(Log::recompiles, to_string(why), why.places());
  if (options_.policy != Policy::promote) return;
  for (const auto& known : compiled_) {
    if (alike(*known, hash, program)) promote(*known, program);
  }
}

// True when the policy gives these operations no further kernel.
bool Function::at_limit(std::uint64_t hash, const Program& program) const {
  if (options_.policy != Policy::specialize) return false;
  const auto made = std::count_if(
      compiled_.begin(), compiled_.end(),
      [&](const auto& known) { return alike(*known, hash, program); });
  return std::size_t(made) >= specialization_limit;
}

void Function::run_eagerly(std::uint64_t hash, const Program& program) {
  if (eagerly_ == nullptr) {
    warn(limit_text(report(hash, program)));
    eagerly_ = std::make_unique<Function>(FunctionOptions{
        .name = options_.name, .backend = Backend::interpreted});
    eagerly_->set_eager();
  }
  const Counters before = eagerly_->counters();
  replay(program, *eagerly_);
  last_call_.push_back({nullptr,
                        "operation by operation: the policy gives these "
                        "operations no further kernel"});
  counters_ += eagerly_->counters() - before;  // the process has them already
}

CompiledProgram& Function::compile(std::uint64_t hash, const Program& program) {
  const bool again = !eager_ && is_recompile(hash, program);
  RecompileReport why;
  if (again) {
    why = report(hash, program);
    prepare_recompile(why, hash, program);
  }
  auto made = std::make_unique<CompiledProgram>();
  made->hash = hash;
  made->program = program;
  made->plan = make_plan(
      program,
      [](void* self, const Origin& origin) {
        return static_cast<const Function*>(self)->may_bake(origin);
      },
      this);
  made->counts_as_launch = !eager_ || touches_elements(made->plan);
  if (!eager_) {
    if (log_enabled(Log::graph)) {
      write_log(Log::graph, graph_text(options_.name, program, made->plan));
    }
    if (log_enabled(Log::output_code)) {
      write_log(Log::output_code,
                "\n" + code_text(made->plan, target_of(program)),
                code_places(made->plan));
    }
  }
  if (!eager_) {
    keep_source(made->plan);
    record_kernel(made->plan);
  }
  made->kernel = make_kernel(made->plan, options_.backend, device_of(program));
  if (!eager_) count({.compilations = 1, .recompiles = again ? 1 : 0});
  if (again) reports_.push_back(std::move(why));
  compiled_.push_back(std::move(made));
  return *compiled_.back();
}

void Function::launch(CompiledProgram& compiled, const Program& program) {
  const bool rebuilt =
      compiled.table.bind(compiled.plan, program, thread_count());
  const bool launches =
      compiled.counts_as_launch && !compiled.table.rows().empty();
  compiled.kernel->launch(compiled.table);
  if (launches) trace(compiled);
  if (launches && !eager_) last_call_.push_back({&compiled, ""});
  count({.launches = launches ? 1 : 0,
         .uploads = rebuilt ? 1 : 0,
         .bytes_moved = compiled.table.bytes()});
}

void Function::execute(const Program& program) {
  const std::uint64_t hash = program.structure_hash();
  CompiledProgram* compiled = find(hash, program);
  if (compiled == nullptr && at_limit(hash, program)) {
    run_eagerly(hash, program);
  } else {
    if (compiled == nullptr) compiled = &compile(hash, program);
    launch(*compiled, program);
  }
  segments_ = std::max(segments_, ++segment_);
  // What is launched because of a break was recorded before it.
  if (!break_.empty()) last_call_.push_back({nullptr, std::move(break_)});
  break_.clear();
}

void Function::relaunch() {
  if (compiled_.empty()) {
    throw Error("function " + options_.name +
                " was never called, so there is nothing to launch again");
  }
  CompiledProgram& newest = *compiled_.back();
  newest.kernel->launch(newest.table);
  count({.launches = newest.counts_as_launch ? 1 : 0,
         .bytes_moved = newest.table.bytes()});
}

void Function::graph_break(const std::string& why) {
  if (options_.fullgraph) {
    throw Error("graph break in function " + options_.name + " (" +
                options_.place.file_name() + ":" +
                std::to_string(options_.place.line()) + "): " + why +
                "; move the access out of the compiled function or compile it "
                "without fullgraph");
  }
  count({.graph_breaks = 1});
  break_ = "graph break: " + why;
  write_log(Log::graph,
            "graph break in function " + options_.name + ": " + why);
}

std::string Function::output_code() const {
  return compiled_.empty() ? ""
                           : code_text(compiled_.back()->plan,
                                       target_of(compiled_.back()->program));
}

std::string Function::summary() const {
  return compiled_.empty() ? "" : describe(compiled_.back()->plan);
}

void Function::count(const Counters& more) {
  counters_ += more;
  add_to_process(more);
}

}  // namespace fuse
