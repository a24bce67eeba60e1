#include "fusebook/cuda/gpu_staging.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

namespace fuse {
namespace {

constexpr std::size_t smallest_buffer = std::size_t(1) << 16;

}  // namespace

GpuStaging::~GpuStaging() {
  // A copy in flight may still read from the buffers.
  if (!buffers_.empty()) {
    context_.quietly(
        [&] { context_.api().stream_synchronize(context_.stream()); });
  }
  for (const Buffer& buffer : buffers_) free_buffer(buffer);
}

void GpuStaging::free_buffer(const Buffer& buffer) noexcept {
  context_.quietly([&] {
    if (buffer.event != nullptr) context_.api().event_destroy(buffer.event);
    if (buffer.memory != nullptr) context_.api().mem_free_host(buffer.memory);
  });
}

bool GpuStaging::is_free(Buffer& buffer, std::string_view doing) {
  if (!buffer.in_flight) return true;
  const cuda::Result code = context_.api().event_query(buffer.event);
  if (code == cuda::not_ready) return false;
  context_.check(code, "cuEventQuery", doing);
  buffer.in_flight = false;
  return true;
}

void GpuStaging::wait_for(Buffer& buffer, std::string_view doing) {
  if (!buffer.in_flight) return;
  context_.check(context_.api().event_synchronize(buffer.event),
                 "cuEventSynchronize", doing);
  buffer.in_flight = false;
  ++waits_;
}

GpuStaging::Buffer& GpuStaging::make_newest(
    const std::deque<Buffer>::iterator& buffer) {
  std::rotate(buffer, buffer + 1, buffers_.end());
  return buffers_.back();
}

GpuStaging::Buffer& GpuStaging::add(std::size_t bytes, std::string_view doing) {
  const CudaApi& api = context_.api();
  // Added to the list first: whatever fails, the destructor frees it.
  Buffer& made = buffers_.emplace_back();
  try {
    const std::size_t size = std::max(smallest_buffer, std::bit_ceil(bytes));
    context_.check(
        api.mem_host_alloc(&made.memory, size, cuda::host_alloc_portable),
        "cuMemHostAlloc", doing);
    context_.check(api.event_create(&made.event, cuda::event_disable_timing),
                   "cuEventCreate", doing);
    made.size = size;
    return made;
  } catch (...) {
    free_buffer(made);
    buffers_.pop_back();
    throw;
  }
}

// The oldest buffer that is large enough, if it is free; if it is not, no later
// one is. Otherwise a new one or, at the maximum number, that oldest one once
// it is free.
GpuStaging::Buffer& GpuStaging::take(std::size_t bytes,
                                     std::string_view doing) {
  const auto fits =
      std::find_if(buffers_.begin(), buffers_.end(),
                   [&](const Buffer& buffer) { return buffer.size >= bytes; });
  if (fits != buffers_.end() && is_free(*fits, doing)) {
    return make_newest(fits);
  }
  if (buffers_.size() < most_buffers) return add(bytes, doing);
  if (fits != buffers_.end()) {
    wait_for(*fits, doing);
    return make_newest(fits);
  }
  wait_for(buffers_.front(), doing);
  free_buffer(buffers_.front());
  buffers_.pop_front();
  return add(bytes, doing);
}

void GpuStaging::send(Buffer& buffer, cuda::Address to, std::size_t bytes,
                      std::string_view doing) {
  const CudaApi& api = context_.api();
  context_.check(
      api.memcpy_htod_async(to, buffer.memory, bytes, context_.stream()),
      "cuMemcpyHtoDAsync", doing);
  ++uploads_;
  const cuda::Result code = api.event_record(buffer.event, context_.stream());
  if (code != cuda::success) {
    // No event reports the end of this copy, so wait for it now.
    api.stream_synchronize(context_.stream());
    context_.check(code, "cuEventRecord", doing);
  }
  buffer.in_flight = true;
}

}  // namespace fuse
