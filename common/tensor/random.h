#pragma once

#include <cstdint>
#include <random>

#include "fusebook/tensor/tensor.h"

namespace fuse {

/// A source of random numbers that gives the same sequence for the same seed on
/// every machine.
class Generator {
 public:
  /// Equal seeds give equal sequences.
  explicit Generator(std::uint64_t seed) : engine_(seed) {}

  /// The next 64 random bits.
  std::uint64_t bits() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

/// Overwrites every element with a number drawn uniformly from `low` to `high`.
/// A float32 is drawn from 2^24 steps, a float64 from 2^53, a float16 from
/// 2^11, a bfloat16 from 2^8. Numbers are always drawn on the host and then
/// copied to the tensor's device: every device gets the same ones.
void uniform_(const Tensor& tensor, double low, double high,
              Generator& generator);

/// A tensor of numbers drawn uniformly from [0, 1), like `torch.rand`; uses
/// `uniform_`, on the host.
Tensor rand(const Shape& shape, Generator& generator,
            DType dtype = DType::float32);

}  // namespace fuse
