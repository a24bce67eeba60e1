// Checks that a function can launch inside a CUDA graph: nothing is missing,
// and no number that moves would be frozen.
#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "fusebook/compile/compiled_function.h"
#include "fusebook/compile/function_kernels.h"
#include "fusebook/reports/recompile.h"
#include "fusebook/runtime/parallel.h"
#include "fusebook/support/error.h"
#include "fusebook/support/join.h"
#include "fusebook/support/number_text.h"
#include "fusebook/support/source_place.h"

namespace fuse {
namespace {

// Numbers passed to a kernel at each launch, as scalars of the program.
std::vector<std::int32_t> given_numbers(const Plan& plan) {
  std::vector<std::int32_t> given = plan.args;
  for (const Instance& instance : plan.instances) {
    given.insert(given.end(), instance.columns.begin(), instance.columns.end());
  }
  std::erase(given, -1);  // from bodies that this program does not use
  return given;
}

// True for a plain number; false if it was read from a tensor in host memory.
bool is_plain(const Program& program, std::int32_t scalar) {
  const auto nodes = program.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](const Node& node) {
    return node.op == OpCode::constant && node.in[0] == scalar;
  });
}

bool has_moved(const Origin& origin,
               const std::vector<RecompileReport>& reports) {
  const std::string path = to_string(origin);
  return origin.moves ||
         std::any_of(reports.begin(), reports.end(),
                     [&](const RecompileReport& report) {
                       const auto moved = report.moved();
                       return std::find(moved.begin(), moved.end(), path) !=
                              moved.end();
                     });
}

// A float as it was written: 0.01, even if the number is that in 32 bits.
std::string value_text(double value) {
  const auto as_float = static_cast<float>(value);
  return double(as_float) == value ? number_text(as_float) : number_text(value);
}

// Says which number in host memory would be frozen, and what to do about it.
std::string frozen_text(const ScalarLeaf& number, const char* what,
                        const char* also = "") {
  const std::string value = value_text(number.value);
  return fmt::format(
      ": a graph would freeze {} at {}, {}; make it a tensor on the GPU, "
      "tensor({}).to(device), which replays read{}",
      to_string(number.origin), value, what, value, also);
}

std::string given_text(const ScalarLeaf& number, bool plain) {
  return plain ? frozen_text(number,
                             "a plain number that became an input because "
                             "numbers of this function have changed",
                             ", if it changes; then compile the function again")
               : frozen_text(number, "a tensor in host memory");
}

// Explains why there will never be a kernel for what was recorded.
std::string eager_text(KernelLimit limit, const RecompileReport& why) {
  if (limit == KernelLimit::operations) {
    return fmt::format(
        " cannot be captured: what it records now always runs eagerly, because "
        "it already has the maximum of {} kernels for different operations; "
        "compile a function for each way it is called",
        operations_limit);
  }
  return fmt::format(
      " cannot be captured: for these values of {} it always runs eagerly, "
      "because Policy::specialize allows at most {} kernels; make each of them "
      "a tensor on the GPU",
      join(why.moved()), specialization_limit);
}

// Explains why there is no kernel yet for what was recorded.
std::string missing_text(const RecompileReport& why) {
  std::string text =
      " cannot be captured before it is compiled for this call: ";
  for (const GuardFailure& failure : why.failures) {
    text += fmt::format("{} was {} and now is {}; ", failure.path,
                        number_text(failure.guarded), number_text(failure.now));
  }
  for (const std::string& change : why.changes) text += change + "; ";
  if (why.failures.empty() && why.changes.empty()) {
    text += "it records different operations than before; ";
  }
  return text + "call it once more first";
}

}  // namespace

std::string Function::where() const {
  return fmt::format("function {} in {}", options_.name, short_place(place_));
}

Device Function::device() const {
  for (const CallEvent& event : last_call_) {
    if (event.launched != nullptr) return device_of(event.launched->program);
  }
  if (const auto* const latest = kernels_->store.latest()) {
    return device_of(latest->program);
  }
  throw Error(where() +
              " has not launched anything yet: call it once before capturing "
              "it, so that its kernel is compiled and its table is on the "
              "GPU");
}

void Function::refuse_scheduled_numbers(const Program& program) const {
  for (std::size_t k = 0; k < program.scalars().size(); ++k) {
    const ScalarLeaf& number = program.scalars()[k];
    if (!number.origin.scheduled || !is_plain(program, std::int32_t(k))) {
      continue;
    }
    throw Error(where() +
                frozen_text(number, "a plain number with a scheduler"));
  }
}

// Plain numbers that never moved are as good as constants in the code.
void Function::refuse_given_numbers(const CompiledProgram& known,
                                    const Program& program) const {
  std::optional<std::int32_t> found;
  for (const std::int32_t scalar : given_numbers(known.plan)) {
    const Origin& origin = program.scalars()[scalar].origin;
    if (is_plain(program, scalar) && kernels_->promotion.may_bake(origin)) {
      continue;
    }
    if (!found) found = scalar;
    if (!has_moved(origin, reports_)) continue;
    // numbers that never moved may merely be passed along with it
    found = scalar;
    break;
  }
  if (!found) return;
  throw Error(where() +
              given_text(program.scalars()[*found], is_plain(program, *found)));
}

// A program that needs several launches, or must wait for numbers, never gets a
// single kernel.
void Function::refuse_parts(const Program& program) const {
  const std::vector<ProgramPart> parts = parts_in_order(program);
  if (parts.size() == 1 && parts[0].early.empty()) return;
  throw Error(where() + " cannot be captured as one launch: " +
              (parts.size() > 1 ? parts[1].why
                                : "an operation overwrites a number that it "
                                  "reads") +
              "; give each tensor its own memory");
}

const CompiledProgram& Function::bind_captured(const Program& program) {
  refuse_scheduled_numbers(program);
  const Request request(program);
  CompiledProgram* const known = kernels_->store.find(request);
  if (known == nullptr) {
    refuse_parts(program);
    const RecompileReport why = explain_for(request, 0);
    const KernelLimit limit =
        limit_for(options_.policy, kernels_->store, request, 0);
    throw Error(where() + (limit == KernelLimit::none
                               ? missing_text(why)
                               : eager_text(limit, why)));
  }
  refuse_given_numbers(*known, program);
  if (known->table.lists_changed(program, thread_count())) {
    throw Error(where() +
                " cannot be captured: its tensors are not those of its last "
                "call (it may have new gradients), and the GPU does not have "
                "their addresses; call it once more first, and keep its "
                "tensors");
  }
  bind_table(known->table, *known->kernel, known->plan, program,
             thread_count());
  known->captured = true;
  return *known;
}

void Function::count_replay(const CompiledProgram& launched,
                            const Counters& launches) {
  begin();
  last_call_.push_back({&launched, ""});
  count(launches);
}

}  // namespace fuse
