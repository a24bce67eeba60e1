#include <algorithm>

#include "fusebook/codegen/emit_kernel.h"
#include "fusebook/codegen/emit_target.h"
#include "fusebook/codegen/template_text.h"
#include "fusebook/prelude/prelude_text.h"

namespace fuse {
namespace {

// What the library calls.
std::string entry_points(const Plan& plan) {
  return fill(
      R"(extern "C" FUSE_EXPORT void fuse_init(const Calls* table) {
  calls = table;
}
extern "C" FUSE_EXPORT void fuse_run(const Launch* launch, const Part* part) {
  @runners@
  for_each_row(*launch, *part, [&](const Row& row, i64 begin, i64 end, bool whole) {
    @run@
  });
}
extern "C" FUSE_EXPORT void fuse_finish(const Launch* launch, i64 index) {
  @runners@
  const Row& row = launch->rows[index];
  {
    @finish@
  }
}
)",
      {{"runners", for_each_body(plan, "Runner<Body@b@> body@b@(*launch);\n")},
       {"run", dispatch(plan, "row.body", "run(row, begin, end, whole)")},
       {"finish", dispatch(plan, "row.body", "finish(row)")}});
}

}  // namespace

std::string generate_cpu_source(const Plan& plan) {
  const bool in_lanes =
      std::any_of(plan.bodies.begin(), plan.bodies.end(), runs_in_lanes);
  // Lanes are as wide as registers get; memory is touched half as wide.
  const std::string wide = R"(#if defined(__AVX512F__) && !defined(__clang__)
#pragma GCC target("prefer-vector-width=512")
#endif
)";
  return (in_lanes ? wide : "") + device_text + "\n" +
         (in_lanes ? lanes_text : "") + R"(
#define FUSE_EXPORT __attribute__((visibility("default")))
namespace fuse {
namespace device {
const Calls* calls;
)" + generate_bodies(plan) +
         entry_points(plan) + "}  // namespace device\n}  // namespace fuse\n";
}

}  // namespace fuse
