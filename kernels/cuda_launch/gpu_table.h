#pragma once

#include <cstddef>

#include "fusebook/cuda/cuda_types.h"
#include "fusebook/runtime/launch_table.h"

namespace fuse {

/// Offsets of the parts of an uploaded table, in bytes: addresses, strides (if
/// any), chunks, and the tickets, which are zero. Where the plan reduces, what
/// is reduced follows, with tickets of its own, and the barrier, which is zero.
struct GpuTableLayout {
  std::size_t pointers = 0;
  std::size_t strides = 0;
  bool strided = false;
  std::size_t chunks = 0;
  std::size_t tickets = 0;
  std::size_t bytes = 0;
  i64 chunk_count = 0;
  i64 tensor_count = 0;
  std::size_t reduced_tensors = 0;
  std::size_t reduced_chunks = 0;
  std::size_t reduced_lists = 0;
  std::size_t reduced_tickets = 0;
  std::size_t reduced_phases = 0;
  std::size_t barrier = 0;
};

GpuTableLayout lay_out(const Table& table);

/// Writes the `layout.bytes` bytes of the table to `memory`: each row of the last
/// phase is cut into chunks at multiples of `gpu_chunk` elements. A row without elements
/// also gets one chunk, for its per-tensor stores.
void write_table(const Table& table, const GpuTableLayout& layout,
                 void* memory);

/// The arguments of a kernel for a table uploaded to `start`; without scalars.
GpuLaunch launch_at(const GpuTableLayout& layout, cuda::Address start);

/// The same for a kernel that reduces, for its last phase alone.
PhasedLaunch phased_launch_at(const Table& table, const GpuTableLayout& layout,
                              cuda::Address start);

}  // namespace fuse
