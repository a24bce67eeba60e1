#pragma once

#include <string>
#include <vector>

#include "fusebook/codegen/emit_body.h"
#include "fusebook/ir/plan.h"

namespace fuse {

/// The generated part of a kernel's source: the operations it uses and one
/// struct a body, with named values. It depends on the bodies alone, never on
/// how many tensors there are or where they lie.
std::string generate_bodies(const Plan& plan);

/// The same for people: beside each line the operation and the place it was
/// written at. What is compiled has none of that, so that equal kernels are
/// equal wherever they come from.
std::string annotated_bodies(const Plan& plan, Target target,
                             PlaceText place_text);

/// The complete source for the host compiler: the prelude, where 16-bit elements
/// need it the headers of lanes, the bodies, and the exported functions `fuse_init`,
/// `fuse_run` and `fuse_finish`.
std::string generate_cpu_source(const Plan& plan);

/// The complete source for a GPU: the prelude, gpu_loops.h, the bodies, and the
/// kernel `fuse_kernel`, whose parameters gpu_layout.h describes.
std::string generate_gpu_source(const Plan& plan);

/// What of that source belongs to this plan: all but the two headers. It says
/// nothing of places, addresses, sizes or the architecture, so that a machine
/// without a GPU generates what one with a GPU runs.
std::string generate_gpu_part(const Plan& plan);

/// A hash of that part, as hexadecimal digits: it is the same on every device.
std::string gpu_part_hash(const Plan& plan);

/// The complete source for a GPU of the kernel `sum_chunks`, which sums.h
/// describes.
std::string gpu_sums_source();

/// The complete source for a GPU of the kernels `average_bands` and `join_columns`,
/// which matrix_means.h describes.
std::string gpu_matrix_means_source();

/// A text for a GPU with its kernel `name` under the fixed name of generated
/// kernels, by which modules are loaded.
std::string gpu_kernel_source(const std::string& text, const std::string& name);

/// The complete sources of the kernels that a GPU may need beside those of
/// plans, as they are compiled.
std::vector<std::string> gpu_library_sources();

}  // namespace fuse
