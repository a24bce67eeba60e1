#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string_view>

#include "fusebook/cuda/gpu_context.h"

namespace fuse {

/// Uploads that do not wait: a ring of pinned host buffers. The bytes are
/// written into the oldest buffer and copied from there in stream order, and an
/// event tells when the buffer may be reused. Buffers are created on demand, up
/// to eight; after that, uploads wait for the oldest. Thread-safe.
class GpuStaging {
 public:
  static constexpr std::size_t most_buffers = 8;

  explicit GpuStaging(GpuContext& context) : context_(context) {}
  ~GpuStaging();
  GpuStaging(const GpuStaging&) = delete;
  GpuStaging& operator=(const GpuStaging&) = delete;

  /// Calls `fill(void* memory)`, which writes `bytes` bytes, and copies them to
  /// the device, ahead of anything enqueued on the stream later. Throws Error;
  /// the bytes on the device are then unspecified.
  template <class Fill>
  void upload(cuda::Address to, std::size_t bytes, std::string_view doing,
              Fill fill) {
    if (bytes == 0) return;
    const std::lock_guard lock(mutex_);
    const CurrentContext current(context_);
    Buffer& buffer = take(bytes, doing);
    fill(buffer.memory);
    send(buffer, to, bytes, doing);
  }

  /// Number of uploads that had to wait for an earlier one.
  std::int64_t waits() const { return waits_; }
  std::int64_t uploads() const { return uploads_; }

 private:
  struct Buffer {
    void* memory = nullptr;
    std::size_t size = 0;
    cuda::Event event = nullptr;
    bool in_flight = false;
  };

  Buffer& take(std::size_t bytes, std::string_view doing);
  bool is_free(Buffer& buffer, std::string_view doing);
  void wait_for(Buffer& buffer, std::string_view doing);
  Buffer& add(std::size_t bytes, std::string_view doing);
  Buffer& make_newest(const std::deque<Buffer>::iterator& buffer);
  void send(Buffer& buffer, cuda::Address to, std::size_t bytes,
            std::string_view doing);
  void free_buffer(const Buffer& buffer) noexcept;

  GpuContext& context_;
  std::mutex mutex_;
  std::deque<Buffer> buffers_;  // least recently used first
  std::atomic<std::int64_t> waits_ = 0;
  std::atomic<std::int64_t> uploads_ = 0;
};

}  // namespace fuse
