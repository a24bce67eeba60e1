#include "fusebook/ops/float16.h"

#include "fusebook/prelude/half.h"

namespace fuse {

Float16::Float16(float value) : bits(device::to_float16(value)) {}
Float16::Float16(double value) : bits(device::to_float16(value)) {}
Float16::operator float() const { return device::from_float16(bits); }

BFloat16::BFloat16(float value) : bits(device::to_bfloat16(value)) {}
BFloat16::BFloat16(double value) : bits(device::to_bfloat16(value)) {}
BFloat16::operator float() const { return device::from_bfloat16(bits); }

}  // namespace fuse
