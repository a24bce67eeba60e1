#include <fmt/core.h>

#include <cstdint>
#include <string>

#include "fusebook/nn/functional.h"
#include "fusebook/ops/element.h"
#include "fusebook/prelude/philox.h"
#include "fusebook/runtime/parallel_for.h"
#include "fusebook/support/error.h"
#include "fusebook/support/number_text.h"
#include "fusebook/tensor/autograd.h"
#include "fusebook/tensor/pointwise.h"

namespace fuse {
namespace {

// Below this many blocks of four a second thread costs more than it saves.
constexpr std::int64_t blocks_per_thread = 2048;

template <class T>
void draw(void* noise, std::int64_t count, double keep, std::uint64_t seed,
          std::uint64_t offset) {
  const T kept = static_cast<T>(1.0 / double(static_cast<T>(keep)));
  const T gone = static_cast<T>(0.0);
  parallel_for(
      (count + 3) / 4, blocks_per_thread,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t block = begin; block < end; ++block) {
          const auto bits = device::philox(seed, offset, std::uint64_t(block));
          for (std::int64_t k = 0; k < 4 && 4 * block + k < count; ++k) {
            const bool stays = double(bits.words[k]) * 0x1p-32 < keep;
            store_element(noise, std::size_t(4 * block + k),
                          stays ? kept : gone);
          }
        }
      });
}

/// The factor for each element of an input: 0, or 1 / keep.
Tensor make_noise(const Tensor& input, double keep, std::uint64_t seed,
                  std::uint64_t offset) {
  const Tensor noise = empty(input.shape(), input.dtype(), cpu_device);
  with_type(noise.dtype(), [&](auto type) {
    draw<decltype(type)>(noise.raw_data(), noise.numel(), keep, seed, offset);
  });
  return noise.to(input.device());
}

}  // namespace

Tensor dropout(const Tensor& input, double p, std::uint64_t seed,
               std::uint64_t offset) {
  if (!input.defined()) throw Error("dropout: the input is undefined");
  if (!(p >= 0 && p <= 1)) {
    throw Error(
        fmt::format("dropout: the probability must be from 0 to 1, not {}",
                    number_text(p)));
  }
  if (p == 0) return input;
  return mul(input, make_noise(input, 1 - p, seed, offset));
}

}  // namespace fuse
