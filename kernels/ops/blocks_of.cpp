#include "fusebook/ops/blocks_of.h"

#include <algorithm>

namespace fuse {
namespace {

using device::Blocks;

// Calls use(Blocks<Codes>).
template <class Codes, class Use>
void with_size(DType dtype, void* address, Use use) {
  switch (block_size_of(dtype)) {
    case 32:
      return use(Blocks<device::InBlocksOf<Codes, 32>>(address));
    case 64:
      return use(Blocks<device::InBlocksOf<Codes, 64>>(address));
    case 128:
      return use(Blocks<device::InBlocksOf<Codes, 128>>(address));
    case 512:
      return use(Blocks<device::InBlocksOf<Codes, 512>>(address));
    case 1024:
      return use(Blocks<device::InBlocksOf<Codes, 1024>>(address));
    case 2048:
      return use(Blocks<device::InBlocksOf<Codes, 2048>>(address));
    default:
      return use(Blocks<Codes>(address));
  }
}

template <class Use>
void with_blocks(DType dtype, void* address, Use use) {
  if (has_sign(dtype)) {
    with_size<device::SignedCodes>(dtype, address, use);
  } else {
    with_size<device::UnsignedCodes>(dtype, address, use);
  }
}

template <class Codes>
void decode(const Blocks<Codes> blocks, i64 first, i64 n, float* to) {
  for (i64 i = first; i < first + n;) {
    const i64 block = i / Codes::block;
    const i64 end = std::min((block + 1) * Codes::block, first + n);
    device::decode_run<Codes>(blocks.codes(block) + i % Codes::block, end - i,
                              blocks.unit(block), to + (i - first));
    i = end;
  }
}

template <class Codes>
void encode(const float* from, i64 n, const Blocks<Codes> blocks, i64 first) {
  for (i64 i = 0; i < n; i += Codes::block) {
    device::encode_block(from + i, std::min(Codes::block, n - i), blocks,
                         (first + i) / Codes::block);
  }
}

}  // namespace

void decode_blocks(DType dtype, const void* from, std::int64_t first,
                   std::int64_t n, float* to) {
  with_blocks(dtype, const_cast<void*>(from),
              [&](auto blocks) { decode(blocks, first, n, to); });
}

void encode_blocks(DType dtype, const float* from, std::int64_t n, void* to,
                   std::int64_t first) {
  with_blocks(dtype, to, [&](auto blocks) { encode(from, n, blocks, first); });
}

}  // namespace fuse
