#include "fusebook/ops/float16.h"

#include "fusebook/prelude/half.h"
#include "fusebook/prelude/halves.h"

namespace fuse {

Float16::Float16(float value) : bits(device::to_float16(value)) {}
Float16::Float16(double value) : bits(device::to_float16(value)) {}
Float16::operator float() const { return device::from_float16(bits); }

BFloat16::BFloat16(float value) : bits(device::to_bfloat16(value)) {}
BFloat16::BFloat16(double value) : bits(device::to_bfloat16(value)) {}
BFloat16::operator float() const { return device::from_bfloat16(bits); }

Int16::Int16(float value) : number(std::int16_t(device::whole_of(value))) {}
Int16::Int16(double value) : number(std::int16_t(device::whole_of(value))) {}

}  // namespace fuse
