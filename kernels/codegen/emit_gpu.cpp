#include "fusebook/codegen/emit_kernel.h"
#include "fusebook/codegen/emit_target.h"
#include "fusebook/codegen/template_text.h"
#include "fusebook/prelude/gpu_layout.h"
#include "fusebook/prelude/prelude_text.h"

namespace fuse {
namespace {

// One runner a body, and what to do with `chunk`.
std::string entry_point(const Plan& plan) {
  const auto args = i64(plan.args.size());
  const bool by_value = args <= gpu_value_args;
  return fill(
      R"(struct Arguments {
  double value[@count@];
};
extern "C" __global__ void __launch_bounds__(@block@) @kernel@(
    const __grid_constant__ GpuLaunch launch,
    const __grid_constant__ Arguments arguments) {
  const double* const args = @args@;
  @runners@
  for_each_chunk(launch, [&](const Chunk& chunk) {
    @run@
  });
}
)",
      {{"count", std::to_string(gpu_argument_count(args))},
       {"block", std::to_string(gpu_block)},
       {"kernel", gpu_kernel_name},
       {"args", by_value ? "arguments.value" : "launch.table.args"},
       {"runners",
        for_each_body(plan,
                      "const BlockRunner<Body@b@> body@b@(launch, args);\n")},
       {"run", dispatch(plan, "chunk.body", "run(chunk)")}});
}

}  // namespace

std::string generate_gpu_source(const Plan& plan) {
  return std::string("#define FUSE_GPU 1\n") + device_text + "\n" +
         gpu_loops_text + generate_gpu_part(plan);
}

std::string generate_gpu_part(const Plan& plan) {
  return "\nnamespace fuse {\nnamespace device {\n" +
         bodies_text(plan, Target::gpu, nullptr) + entry_point(plan) +
         "}  // namespace device\n}  // namespace fuse\n";
}

std::string gpu_sums_source() {
  return std::string("#define FUSE_GPU 1\n") + device_text + "\n" + sums_text +
         "\n" + gpu_sums_text;
}

}  // namespace fuse
