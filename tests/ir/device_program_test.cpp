// Random programs on the tested device: it must give the bits of plain loops over
// single elements.
//
//   FUSEBOOK_DEVICE_PROGRAMS=1000   that many programs
//   TESTBASE=2                      others
#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "fusebook/compile/compile.h"
#include "ir/random_case.h"
#include "support/tested_device.h"

using namespace fuse;
using namespace random_programs;

namespace {

using Cases = std::vector<std::unique_ptr<Case>>;

/// The script with other operations for those of the C library, of which a GPU has
/// its own.
Script without_library(Script script) {
  for (Step& step : script.steps) {
    const bool exact = step.op == OpCode::fmod || step.op == OpCode::remainder;
    if (is_reduction(step.op) || exact || !calls_library(step.op)) continue;
    step.op = step.in.size() == 1 ? OpCode::rsqrt : OpCode::div;
  }
  return script;
}

Cases cases_on(const Device& device, std::uint64_t first_seed) {
  Cases cases;
  for (std::uint64_t seed = first_seed; seed < first_seed + in_a_batch;
       ++seed) {
    const Script script = ScriptMaker(script_seed(seed)).make();
    cases.push_back(
        std::make_unique<Case>(seed, without_library(script), device));
  }
  return cases;
}

}  // namespace

TEST_CASE("a device has the bits of plain loops") {
  const std::uint64_t count =
      number_from("FUSEBOOK_DEVICE_PROGRAMS", 2 * in_a_batch);
  const std::uint64_t first = number_from("TESTBASE", 1) << 20;
  for (std::uint64_t i = 0; i < count; i += in_a_batch) {
    const Cases cases = cases_on(testing::tested_device(), first + i);
    auto step = compile([&] {
      for (const auto& each : cases) each->play();
    });
    for (const char* const mode : {"compiled", "launched again"}) {
      for (const auto& each : cases) each->reset();
      step();
      for (const auto& each : cases) check_case(*each, mode);
    }
    CHECK(step.counters().compilations == 1);
    CHECK(step.counters().launches == 2);
    CHECK(step.counters().graph_breaks == 0);
  }
}
