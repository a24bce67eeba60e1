#include "fusebook/prelude/host_math.h"

#include <cmath>

namespace fuse {

constinit const Calls host_calls = {
#define CALL_1(name)                                  \
  .name##_f32 = [](float a) { return std::name(a); }, \
  .name##_f64 = [](double a) { return std::name(a); },
#define CALL_2(name)                                              \
  .name##_f32 = [](float a, float b) { return std::name(a, b); }, \
  .name##_f64 = [](double a, double b) { return std::name(a, b); },
    FUSE_FUNCTIONS_1(CALL_1) FUSE_FUNCTIONS_2(CALL_2)
#undef CALL_1
#undef CALL_2
};

}  // namespace fuse
