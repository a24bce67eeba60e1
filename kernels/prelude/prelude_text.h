#pragma once

namespace fuse {

/// Texts of headers of this room, as built into the library. `device_text` is
/// that of target.h, launch.h, half.h, math.h and cpu_loops.h, in this order,
/// `lanes_text` that of lane_words.h, lanes.h and lane_loops.h, and `draws_text` that
/// of philox.h and draws.h; the simulator puts its two texts around CUDA text.
extern const char* const device_text;
extern const char* const lanes_text;
extern const char* const halves_text;
extern const char* const lane_halves_text;
extern const char* const gpu_loops_text;
extern const char* const gpu_sim_prelude_text;
extern const char* const gpu_sim_trailer_text;
extern const char* const sums_text;
extern const char* const gpu_sums_text;
extern const char* const reductions_text;
extern const char* const cpu_reductions_text;
extern const char* const gpu_barrier_text;
extern const char* const gpu_reductions_text;
extern const char* const blocks_text;
extern const char* const lane_blocks_text;
extern const char* const cpu_blocks_text;
extern const char* const gpu_blocks_text;
extern const char* const draws_text;
extern const char* const cpu_draws_text;
extern const char* const gpu_draws_text;
extern const char* const matrix_means_text;
extern const char* const gpu_matrix_means_text;

}  // namespace fuse
