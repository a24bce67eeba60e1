#pragma once

#include <cstdint>
#include <vector>

#include "fusebook/ir/plan.h"
#include "fusebook/ops/loops.h"
#include "fusebook/ops/reductions.h"

namespace fuse {

/// The source of a tile step's operand, or the destination of its result.
struct Place {
  enum class Kind : std::uint8_t { memory, buffer, scalar };
  Kind kind = Kind::buffer;
  std::int32_t index = -1;  ///< index of a slot, buffer, or scalar
};

/// One prebuilt loop over a tile.
struct TileStep {
  Loop loop = nullptr;
  int arity = 0;
  Place in[4];
  Place out;
};

/// A value of the per-tensor stage, as an operand type of the elements: float32
/// or float64.
struct TileScalar {
  std::int32_t value = -1;
  DType dtype{};
};

/// A copy of a finished buffer into memory at the end of a tile.
struct TileCopy {
  std::int32_t buffer = -1;
  std::int32_t slot = -1;
};

/// A reduction of elements: of buffers and of memory in float32 or float64.
struct TileReduction {
  OpCode op{};
  Place in;
  DType dtype{};
};

/// The element stage of a body as loops over tiles. Buffers hold float32 or
/// float64: 16-bit elements are widened when loaded, their results rounded in
/// place, and narrowed again by stores.
struct TileProgram {
  std::vector<TileStep> steps;
  std::vector<TileScalar> scalars;
  std::vector<TileCopy> copies;
  std::vector<TileReduction> reductions;  ///< one per store, if it reduces
  int buffers = 0;
};

/// Elements per tile: small enough that all buffers stay in the L1 cache.
inline constexpr i64 tile_size = 512;
static_assert(tile_size % reduction_lanes == 0,
              "a tile begins with the first lane");

/// Lowers a body. If `direct`, values go straight to the memory they will be
/// stored in, unless a later step reads the old contents; this requires tensors
/// that do not share memory across lists.
TileProgram make_tile_program(const Body& body, bool direct);

}  // namespace fuse
