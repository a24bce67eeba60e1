#include <algorithm>

#include "fusebook/codegen/emit_kernel.h"
#include "fusebook/codegen/emit_target.h"
#include "fusebook/codegen/template_text.h"
#include "fusebook/prelude/gpu_layout.h"
#include "fusebook/prelude/prelude_text.h"
#include "fusebook/support/content_hash.h"

namespace fuse {
namespace {

// The phases that reduce come before the last one, in the same launch or in
// launches of their own.
std::string reducing_part(const Plan& plan) {
  const auto bodies = reducing_bodies(plan);
  if (bodies.empty()) return "";
  return fill(
      R"(if (work.phase_begin < work.phase_end) {
  @reducers@
  for_each_reduced(work, [&](const ReducedTensor& tensor, i64 index, i64 number) {
    @run@
  });
  if (!work.stores) return;
}
)",
      {{"reducers",
        for_each_body(bodies,
                      "const BlockReducer<Body@b@> body@b@(work, args);\n")},
       {"run", dispatch(bodies, "tensor.body", "run(tensor, index, number)")}});
}

bool holds_more(const Body& body) {
  return body.largest_block() > gpu_held_size;
}

// How large blocks are, and for those with phases, that hold much or draw, how many
// a multiprocessor must hold at least: told nothing, ptxas aims at more of them for
// some architectures, and spills.
std::string launch_bounds(const Plan& plan) {
  const bool much =
      std::any_of(plan.bodies.begin(), plan.bodies.end(), holds_more);
  const bool some = plan.reduces() || plan.draws();
  const char* const least = much ? ", 2" : some ? ", 3" : "";
  return std::to_string(gpu_block) + least;
}

// One runner a body, and what to do with `chunk`.
std::string entry_point(const Plan& plan) {
  const auto args = i64(plan.args.size());
  const bool by_value = args <= gpu_value_args;
  const bool reduces = plan.reduces();
  const auto bodies = storing_bodies(plan);
  return fill(
      R"(struct Arguments {
  double value[@count@];
};
extern "C" __global__ void __launch_bounds__(@bounds@) @kernel@(
    const __grid_constant__ @Launch@,
    const __grid_constant__ Arguments arguments) {
  @launch@
  const double* const args = @args@;
  @reduce@
  @runners@
  for_each_chunk(launch, [&](const Chunk& chunk) {
    @run@
  });
}
)",
      {{"count", std::to_string(gpu_argument_count(args))},
       {"bounds", launch_bounds(plan)},
       {"kernel", gpu_kernel_name},
       {"Launch", reduces ? "PhasedLaunch work" : "GpuLaunch launch"},
       {"launch", reduces ? "const GpuLaunch& launch = work.launch;\n" : ""},
       {"args", by_value ? "arguments.value" : "launch.table.args"},
       {"reduce", reducing_part(plan)},
       {"runners",
        for_each_body(bodies,
                      "const BlockRunner<Body@b@> body@b@(launch, args);\n")},
       {"run", dispatch(bodies, "chunk.body", "run(chunk)")}});
}

}  // namespace

std::string generate_gpu_source(const Plan& plan) {
  return std::string("#define FUSE_GPU 1\n") + device_text + "\n" +
         gpu_loops_text +
         (plan.has_halves() ? std::string("\n") + halves_text : "") +
         (plan.has_blocks()
              ? std::string("\n") + blocks_text + "\n" + gpu_blocks_text
              : "") +
         (plan.draws() ? std::string("\n") + draws_text + "\n" + gpu_draws_text
                       : "") +
         (plan.reduces() ? std::string("\n") + reductions_text + "\n" +
                               gpu_barrier_text + "\n" + gpu_reductions_text
                         : "") +
         generate_gpu_part(plan);
}

std::string generate_gpu_part(const Plan& plan) {
  return "\nnamespace fuse {\nnamespace device {\n" +
         bodies_text(plan, Target::gpu, nullptr) + entry_point(plan) +
         "}  // namespace device\n}  // namespace fuse\n";
}

std::string gpu_part_hash(const Plan& plan) {
  return hex_digits(content_hash(generate_gpu_part(plan)));
}

std::string gpu_sums_source() {
  return std::string("#define FUSE_GPU 1\n") + device_text + "\n" +
         halves_text + "\n" + sums_text + "\n" + gpu_sums_text;
}

std::string gpu_matrix_means_source() {
  return gpu_sums_source() + "\n" + matrix_means_text + "\n" +
         gpu_matrix_means_text;
}

std::string gpu_kernel_source(const std::string& text,
                              const std::string& name) {
  return "#define " + name + " " + gpu_kernel_name + "\n#line 1\n" + text;
}

std::vector<std::string> gpu_library_sources() {
  return {gpu_kernel_source(gpu_sums_source(), "sum_chunks"),
          gpu_kernel_source(gpu_matrix_means_source(), "average_bands"),
          gpu_kernel_source(gpu_matrix_means_source(), "join_columns")};
}

}  // namespace fuse
