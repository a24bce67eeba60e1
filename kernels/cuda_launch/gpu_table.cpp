#include "fusebook/cuda_launch/gpu_table.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "fusebook/prelude/gpu_layout.h"

namespace fuse {
namespace {

constexpr std::size_t alignment = 16;

i64 chunks_of(const Row& row) {
  return std::max<i64>(1, (row.numel + gpu_chunk - 1) / gpu_chunk);
}

// Appends a part to the layout; returns its offset.
std::size_t place(std::size_t* end, std::size_t count, std::size_t size) {
  const std::size_t start = (*end + alignment - 1) / alignment * alignment;
  *end = start + count * size;
  return start;
}

template <class T>
void put(char* memory, std::size_t at, std::span<const T> items) {
  if (items.empty()) return;
  const auto* const bytes = static_cast<const void*>(items.data());
  std::memcpy(memory + at, bytes, items.size_bytes());
}

// The number of shares of each tensor, by tensor index.
std::vector<i64> count_shares(std::span<const Row> rows, i64 tensors) {
  std::vector<i64> shares(std::size_t(tensors), 0);
  for (const Row& row : rows) shares[row.entry] += chunks_of(row);
  return shares;
}

std::span<const Row> last_phase(const Table& table) {
  return table.rows().subspan(table.first_row());
}

void lay_out_reductions(const Table& table, GpuTableLayout& layout) {
  const ReduceTable& all = table.reductions();
  std::size_t* const end = &layout.bytes;
  layout.reduced_tensors =
      place(end, all.tensors().size(), sizeof(ReducedTensor));
  layout.reduced_chunks = place(end, all.chunks().size(), sizeof(ReducedChunk));
  layout.reduced_lists = place(end, all.lists().size(), sizeof(ReducedList));
  layout.reduced_tickets =
      place(end, all.tensors().size() + all.lists().size(), sizeof(unsigned));
  layout.reduced_phases = place(end, all.phases().size(), sizeof(PhaseChunks));
  layout.barrier = place(end, 1, sizeof(GridBarrier));
}

std::vector<PhaseChunks> chunks_of_phases(const ReduceTable& all) {
  std::vector<PhaseChunks> chunks;
  for (const ReduceTable::Phase& phase : all.phases()) {
    chunks.push_back({phase.chunks.begin, phase.chunks.end});
  }
  return chunks;
}

template <class T>
T* pointer_at(cuda::Address start, std::size_t offset) {
  return reinterpret_cast<T*>(std::uintptr_t(start) + offset);
}

}  // namespace

GpuTableLayout lay_out(const Table& table) {
  GpuTableLayout layout;
  for (const Row& row : last_phase(table)) {
    layout.chunk_count += chunks_of(row);
    layout.tensor_count = std::max(layout.tensor_count, row.entry + 1);
  }
  std::size_t* const end = &layout.bytes;
  layout.pointers = place(end, table.pointers().size(), sizeof(void*));
  layout.strided = !table.strides().empty();
  layout.strides = place(end, table.strides().size(), sizeof(i64));
  layout.chunks = place(end, std::size_t(layout.chunk_count), sizeof(Chunk));
  layout.tickets =
      place(end, std::size_t(layout.tensor_count), sizeof(unsigned));
  if (!table.reductions().empty()) lay_out_reductions(table, layout);
  return layout;
}

void write_table(const Table& table, const GpuTableLayout& layout,
                 void* memory) {
  // Gaps between the parts must be zero as well, and so must the tickets.
  std::memset(memory, 0, layout.bytes);
  char* const start = static_cast<char*>(memory);
  put(start, layout.pointers, table.pointers());
  put(start, layout.strides, table.strides());
  const ReduceTable& reduced = table.reductions();
  put(start, layout.reduced_tensors, reduced.tensors());
  put(start, layout.reduced_chunks, reduced.chunks());
  put(start, layout.reduced_lists, reduced.lists());
  const std::vector<PhaseChunks> phases = chunks_of_phases(reduced);
  put(start, layout.reduced_phases, std::span<const PhaseChunks>(phases));
  const auto shares = count_shares(last_phase(table), layout.tensor_count);
  char* next = start + layout.chunks;
  for (const Row& row : last_phase(table)) {
    for (i64 k = 0; k < chunks_of(row); ++k) {
      const Chunk chunk = {
          row.pointers,     row.entry,
          row.body,         row.instance,
          k * gpu_chunk,    std::min((k + 1) * gpu_chunk, row.numel),
          shares[row.entry]};
      std::memcpy(next, &chunk, sizeof(chunk));
      next += sizeof(chunk);
    }
  }
}

GpuLaunch launch_at(const GpuTableLayout& layout, cuda::Address start) {
  GpuLaunch launch = {};
  launch.table.pointers = pointer_at<void* const>(start, layout.pointers);
  if (layout.strided) {
    launch.table.strides = pointer_at<const i64>(start, layout.strides);
  }
  launch.chunks = pointer_at<const Chunk>(start, layout.chunks);
  launch.chunk_count = layout.chunk_count;
  launch.tickets = pointer_at<unsigned>(start, layout.tickets);
  return launch;
}

PhasedLaunch phased_launch_at(const Table& table, const GpuTableLayout& layout,
                              cuda::Address start) {
  PhasedLaunch phased = {};
  phased.launch = launch_at(layout, start);
  const ReduceTable& all = table.reductions();
  if (all.empty()) return phased;
  phased.tensors =
      pointer_at<const ReducedTensor>(start, layout.reduced_tensors);
  phased.chunks = pointer_at<const ReducedChunk>(start, layout.reduced_chunks);
  phased.lists = pointer_at<const ReducedList>(start, layout.reduced_lists);
  phased.numbers = table.reducing().numbers;
  phased.tickets = pointer_at<unsigned>(start, layout.reduced_tickets);
  phased.tensor_count = i64(all.tensors().size());
  phased.phases = pointer_at<const PhaseChunks>(start, layout.reduced_phases);
  phased.barrier = pointer_at<GridBarrier>(start, layout.barrier);
  phased.stores = true;
  return phased;
}

}  // namespace fuse
