#include "fusebook/reports/guard_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <set>
#include <tuple>

#include "fusebook/device/device.h"
#include "fusebook/ir/plan.h"
#include "fusebook/reports/recording_diff.h"
#include "fusebook/support/join.h"
#include "fusebook/support/number_text.h"
#include "fusebook/support/same_bytes.h"

namespace fuse {
namespace {

template <class T>
void add_new(std::vector<T>& all, const T& item) {
  if (std::find(all.begin(), all.end(), item) == all.end()) all.push_back(item);
}

GuardFailure failure_of(const Guard& guard, const Origin& origin, double now) {
  GuardFailure failure = {to_string(origin), guard.value, now};
  if (origin.name == nullptr) {
    failure.place = log_place(origin.place);
    failure.path =
        (origin.index < 0 ? std::string("scalar")
                          : fmt::format("operand {}", origin.index)) +
        " at " + to_string(failure.place);
  }
  return failure;
}

// Describes a list where it differs from another one.
std::string kind_of(const Program& program, std::size_t s,
                    const SlotInfo& other) {
  const SlotInfo& slot = program.slots()[s];
  const char* const strided =
      program.lists()[s].repeats ? "broadcast" : "strided";
  std::string text;
  const auto add = [&](bool differs, const std::string& what) {
    if (differs) add_item(text, what);
  };
  add(slot.dtype != other.dtype, name_of(slot.dtype));
  add(slot.strided != other.strided, slot.strided ? strided : "contiguous");
  add(slot.memory != other.memory,
      "on " + to_string(device_of_memory(slot.memory)));
  return text;
}

}  // namespace

std::vector<std::string> RecompileReport::moved() const {
  std::vector<std::string> paths;
  for (const GuardFailure& failure : failures) add_new(paths, failure.path);
  return paths;
}

std::string RecompileReport::where() const {
  return function + " in " + to_string(place);
}

std::vector<LogPlace> RecompileReport::places() const {
  std::vector<LogPlace> all = {place};
  for (const GuardFailure& failure : failures) {
    if (failure.place.line > 0) add_new(all, failure.place);
  }
  for (const LogPlace& each : change_places) add_new(all, each);
  return all;
}

void add_failures(RecompileReport& report, const Plan& plan,
                  const Program& program) {
  // There may be thousands, one per group; comparing bits tells NaNs apart.
  std::set<std::tuple<std::string, std::uint64_t, std::uint64_t>> seen;
  const auto is_new = [&](const GuardFailure& failure) {
    return seen
        .emplace(failure.path, std::bit_cast<std::uint64_t>(failure.guarded),
                 std::bit_cast<std::uint64_t>(failure.now))
        .second;
  };
  std::for_each(report.failures.begin(), report.failures.end(), is_new);
  for (const Guard& guard : plan.guards) {
    const auto scalar = std::size_t(guard.scalar);
    for_each_number(program.scalars()[scalar],
                    [&](double now, const Origin& origin) {
                      if (same_bits(now, guard.value)) return;
                      GuardFailure failure = failure_of(guard, origin, now);
                      if (is_new(failure))
                        report.failures.push_back(std::move(failure));
                    });
  }
}

void add_changes(RecompileReport& report, const Program& known,
                 const Program& program) {
  const std::vector<std::int32_t> slots = slots_before(known, program);
  for (std::size_t s = 0; s < slots.size(); ++s) {
    if (slots[s] < 0) continue;
    const auto old = std::size_t(slots[s]);
    const std::string before = kind_of(known, old, program.slots()[s]);
    const std::string now = kind_of(program, s, known.slots()[old]);
    if (before == now) continue;
    const char* const label = program.lists()[s].label;
    report.changes.push_back((label == nullptr ? "a list" : label) +
                             (" was " + before) + ", now " + now);
  }
}

void add_difference(RecompileReport& report, const RecordingDiff& diff) {
  report.changes.push_back("the recorded operations differ: " + diff.text);
  for (const LogPlace& place : diff.places) {
    add_new(report.change_places, place);
  }
}

std::string to_string(const RecompileReport& report) {
  std::string text = "Recompiling function " + report.where() +
                     "\n    triggered by the following guard failure(s):";
  for (const GuardFailure& failure : report.failures) {
    text += fmt::format("\n    - {} == {}", failure.path,
                        number_text(failure.guarded));
  }
  for (const std::string& change : report.changes) text += "\n    - " + change;
  if (report.failures.empty() && report.changes.empty()) {
    text += "\n    - the recorded operations";
  }
  return text;
}

RecompileError::RecompileError(RecompileReport why)
    : Error(
          to_string(why) + "\nand its policy forbids recompiling: " +
          (why.failures.empty()
               ? "compile a separate function for each way it is called"
               : "make each number that changes a 0-d tensor, or compile with "
                 "Policy::promote")),
      report_(std::move(why)) {}

}  // namespace fuse
