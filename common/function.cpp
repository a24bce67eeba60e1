#include "function.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "codegen.h"
#include "describe.h"
#include "error.h"
#include "log.h"
#include "number_text.h"
#include "parallel.h"
#include "trace.h"

namespace fuse {
namespace {

bool same_bits(double a, double b) {
  return std::memcmp(&a, &b, sizeof(double)) == 0;
}

// Says once in a process why steps run interpreted.
std::shared_ptr<const Kernel> without_compiler(const Plan& plan,
                                               const std::string& why) {
  static std::once_flag said;
  std::call_once(said, [&] {
    std::fprintf(stderr, "fusebook: steps run interpreted: %s\n", why.c_str());
  });
  return make_interpreter(plan);
}

std::shared_ptr<const Kernel> make_kernel(const Plan& plan, Backend backend) {
  if (backend == Backend::interpreted) return make_interpreter(plan);
  try {
    return make_cpu_kernel(generate_cpu_source(plan));
  } catch (const NoCompiler& error) {
    return without_compiler(plan, error.what());
  }
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
  for (const Row& row : compiled.table.rows()) {
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

}  // namespace

CompiledProgram* Function::find(std::uint64_t hash, const Program& program) {
  for (std::size_t i = compiled_.size(); i-- > 0;) {
    CompiledProgram& known = *compiled_[i];
    if (known.hash == hash && known.program.same_structure(program) &&
        known.plan.matches(program)) {
      return &known;
    }
  }
  return nullptr;
}

bool Function::may_bake(const Origin& origin) const {
  return !origin.moves && std::none_of(promoted_.begin(), promoted_.end(),
                                       [&](const Origin& known) {
                                         return same_parameter(known, origin);
                                       });
}

void Function::promote(const Origin& origin) {
  if (may_bake(origin)) promoted_.push_back(origin);
}

// False for the first kernel of a segment between graph breaks.
bool Function::is_recompile(std::uint64_t hash, const Program& program) const {
  return segment_ < segments_ ||
         std::any_of(
             compiled_.begin(), compiled_.end(),
             [&](const auto& known) {
               return known->hash == hash &&
                      known->program.same_structure(program);
             });
}

// Why no earlier kernel fits; what moved becomes an argument from now on.
void Function::report_misses(std::uint64_t hash, const Program& program) {
  std::vector<std::string> lines;
  for (std::size_t i = compiled_.size(); i-- > 0;) {
    const CompiledProgram& known = *compiled_[i];
    if (known.hash != hash || !known.program.same_structure(program)) continue;
    for (const Guard& guard : known.plan.guards) {
      const auto scalar = std::size_t(guard.scalar);
      if (same_bits(program.scalars()[scalar].value, guard.value)) continue;
      const Origin& origin = known.program.scalars()[scalar].origin;
      promote(origin);
      const std::string line =
          "\n    - " + to_string(origin) + " == " + number_text(guard.value);
      if (std::find(lines.begin(), lines.end(), line) == lines.end()) {
        lines.push_back(line);
      }
    }
  }
  if (lines.empty()) lines.emplace_back("\n    - the recorded operations");
  std::string text = "Recompiling function " + options_.name + " in " +
                     options_.place.file_name() + ":" +
                     std::to_string(options_.place.line()) +
                     "\n    triggered by the following guard failure(s):";
  for (const std::string& line : lines) text += line;
  write_log(Log::recompiles, text);
}

CompiledProgram& Function::compile(std::uint64_t hash, const Program& program) {
  const bool again = !eager_ && is_recompile(hash, program);
  if (again) report_misses(hash, program);
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
    write_log(Log::graph, options_.name + "\n" + program.dump());
    if (log_enabled(Log::output_code)) {
      write_log(Log::output_code, "\n" + generate_bodies(made->plan));
    }
  }
  made->kernel = make_kernel(made->plan, options_.backend);
  if (!eager_) count({.compilations = 1, .recompiles = again ? 1 : 0});
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
  count({.launches = launches ? 1 : 0,
         .uploads = rebuilt ? 1 : 0,
         .bytes_moved = compiled.table.bytes()});
}

void Function::execute(const Program& program) {
  const std::uint64_t hash = program.structure_hash();
  CompiledProgram* compiled = find(hash, program);
  if (compiled == nullptr) compiled = &compile(hash, program);
  launch(*compiled, program);
  segments_ = std::max(segments_, ++segment_);
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
  write_log(Log::graph,
            "graph break in function " + options_.name + ": " + why);
}

std::string Function::output_code() const {
  return compiled_.empty() ? "" : generate_bodies(compiled_.back()->plan);
}

std::string Function::summary() const {
  return compiled_.empty() ? "" : describe(compiled_.back()->plan);
}

void Function::count(const Counters& more) {
  counters_ += more;
  add_to_process(more);
}

}  // namespace fuse
