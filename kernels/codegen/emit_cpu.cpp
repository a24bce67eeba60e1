#include <algorithm>

#include "fusebook/codegen/emit_kernel.h"
#include "fusebook/codegen/emit_target.h"
#include "fusebook/codegen/template_text.h"
#include "fusebook/prelude/prelude_text.h"

namespace fuse {
namespace {

// What the library calls for the phases that reduce.
std::string reduction_entry_point(const Plan& plan) {
  const auto bodies = reducing_bodies(plan);
  if (bodies.empty()) return "";
  return fill(
      R"(extern "C" FUSE_EXPORT void fuse_reduce(const Reducing* work, i64 begin, i64 end) {
  @reducers@
  for (i64 c = begin; c < end; ++c) {
    const ReducedChunk& chunk = work->chunks[c];
    const ReducedTensor& tensor = work->tensors[chunk.tensor];
    {
      @run@
    }
  }
}
)",
      {{"reducers",
        for_each_body(bodies, "Reducer<Body@b@> body@b@(*work);\n")},
       {"run", dispatch(bodies, "tensor.body", "run(tensor, chunk.number)")}});
}

// What the library calls.
std::string entry_points(const Plan& plan) {
  const auto bodies = storing_bodies(plan);
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
      {{"runners",
        for_each_body(bodies, "Runner<Body@b@> body@b@(*launch);\n")},
       {"run", dispatch(bodies, "row.body", "run(row, begin, end, whole)")},
       {"finish", dispatch(bodies, "row.body", "finish(row)")}});
}

// Several selections, by numbers that are the same for all elements: g++ would
// turn them into jumps, and no longer vectorise.
bool selects(const Body& body) {
  return std::count_if(
             body.nodes.begin(), body.nodes.end(), [](const BodyNode& node) {
               return node.op == OpCode::where && node.rate == Rate::element;
             }) > 1;
}

std::string halves(const Plan& plan, bool in_lanes) {
  if (!plan.has_halves()) return "";
  return std::string("\n") + halves_text + (in_lanes ? lane_halves_text : "");
}

// Where two sets of lanes take turns: g++ would otherwise put one after the other.
bool take_turns(const Body& body) {
  return runs_in_lanes(body) && !body.has_blocks() && !is_long(body);
}

// How g++ compiles what follows.
std::string pragmas(const Plan& plan, bool in_lanes) {
  // Lanes are as wide as registers get; memory is touched half as wide, and codes
  // a quarter.
  const std::string wide = R"(#if defined(__AVX512F__) && !defined(__clang__)
#pragma GCC target("prefer-vector-width=512")
#endif
)";
  const std::string in_turn =
      R"(#if defined(__AVX512BW__) && !defined(__clang__)
#pragma GCC optimize("schedule-insns,sched-pressure")
#endif
)";
  // Pairs gain most where registers are not spared; codes and float16 lose by it.
  const std::string in_pairs =
      R"(#if defined(__AVX2__) && !defined(__AVX512BW__) && !defined(__clang__)
#pragma GCC optimize("schedule-insns")
#endif
)";
  const std::string no_jumps = R"(#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-thread-jumps")
#endif
)";
  const auto some_body = [&plan](bool (*is)(const Body&)) {
    return std::any_of(plan.bodies.begin(), plan.bodies.end(), is);
  };
  return (in_lanes || plan.has_blocks() ? wide : "") +
         (some_body(take_turns) ? in_turn : "") +
         (some_body(runs_in_pairs) && !plan.has_blocks() ? in_pairs : "") +
         (some_body(selects) ? no_jumps : "");
}

// With all loops in one function a kernel of many bodies takes longer to compile;
// one of few bodies saves a call for each row.
std::string loop_macro(const Plan& plan) {
  return plan.bodies.size() > 4 ? "#define FUSE_LOOP inline\n" : "";
}

}  // namespace

std::string generate_cpu_source(const Plan& plan) {
  const bool in_lanes =
      std::any_of(plan.bodies.begin(), plan.bodies.end(), runs_in_lanes);
  const bool blocks = plan.has_blocks();
  return pragmas(plan, in_lanes) + loop_macro(plan) + device_text + "\n" +
         (in_lanes ? lanes_text : "") + halves(plan, in_lanes) +
         (blocks ? std::string("\n") + blocks_text + "\n" +
                       (in_lanes ? lane_blocks_text : "") + cpu_blocks_text
                 : "") +
         (plan.draws() ? std::string("\n") + draws_text + "\n" + cpu_draws_text
                       : "") +
         (plan.reduces()
              ? std::string("\n") + reductions_text + "\n" + cpu_reductions_text
              : "") +
         R"(
#define FUSE_EXPORT __attribute__((visibility("default")))
namespace fuse {
namespace device {
const Calls* calls;
)" + generate_bodies(plan) +
         entry_points(plan) + reduction_entry_point(plan) +
         "}  // namespace device\n}  // namespace fuse\n";
}

}  // namespace fuse
