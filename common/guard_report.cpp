#include "guard_report.h"

#include <algorithm>
#include <cstring>

#include "number_text.h"

namespace fuse {
namespace {

bool same_bits(double a, double b) {
  return std::memcmp(&a, &b, sizeof(double)) == 0;
}

template <class T>
void add_new(std::vector<T>& all, const T& item) {
  if (std::find(all.begin(), all.end(), item) == all.end()) all.push_back(item);
}

}  // namespace

std::vector<std::string> RecompileReport::moved() const {
  std::vector<std::string> paths;
  for (const GuardFailure& failure : failures) add_new(paths, failure.path);
  return paths;
}

std::string RecompileReport::where() const {
  return function + " in " + file + ":" + std::to_string(line);
}

void add_failures(RecompileReport& report, const Plan& plan,
                  const Program& known, const Program& program) {
  for (const Guard& guard : plan.guards) {
    const auto scalar = std::size_t(guard.scalar);
    const double now = program.scalars()[scalar].value;
    if (same_bits(now, guard.value)) continue;
    add_new(report.failures,
            {to_string(known.scalars()[scalar].origin), guard.value, now});
  }
}

std::string to_string(const RecompileReport& report) {
  std::string text = "Recompiling function " + report.where() +
                     "\n    triggered by the following guard failure(s):";
  for (const GuardFailure& failure : report.failures) {
    text += "\n    - " + failure.path + " == " + number_text(failure.guarded);
  }
  if (report.failures.empty()) text += "\n    - the recorded operations";
  return text;
}

RecompileError::RecompileError(RecompileReport why)
    : Error(to_string(why) +
            "\nand its policy forbids that: make what moves a 0-d tensor, or "
            "compile with Policy::promote"),
      report_(std::move(why)) {}

}  // namespace fuse
