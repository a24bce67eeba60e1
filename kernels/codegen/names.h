#pragma once

#include <string>
#include <vector>

#include "fusebook/ir/plan.h"

namespace fuse {

/// Names for everything in a body: readable, valid in C++, and unique.
struct BodyNames {
  std::vector<std::string> slots;
  std::vector<std::string> values;  ///< of nodes that are not constants
  /// Of per-tensor and uniform values rounded to float32, where the value
  /// itself is needed as well.
  std::vector<std::string> rounded;
};
BodyNames name_body(const Body& body);

/// `0x1.999999999999ap-4 /* 0.1 */`; with suffix f and rounded to float32 for
/// types that compute in that.
std::string constant_text(double value, DType dtype);

}  // namespace fuse
