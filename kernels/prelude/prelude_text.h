#pragma once

namespace fuse {

/// The texts of device.h, lanes.h, gpu_loops.h, the two files that the simulator
/// puts around CUDA text, sums.h and gpu_sums.h, as built into the library.
extern const char* const device_text;
extern const char* const lanes_text;
extern const char* const gpu_loops_text;
extern const char* const gpu_sim_prelude_text;
extern const char* const gpu_sim_trailer_text;
extern const char* const sums_text;
extern const char* const gpu_sums_text;

}  // namespace fuse
