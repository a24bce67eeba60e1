#include "fusebook/cuda/gpu.h"

#include <fmt/core.h>

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace fuse {
namespace {

// Up to this size, copying into pinned memory costs less than waiting.
constexpr std::size_t staged_limit = std::size_t(1) << 16;

cuda::Address address_of(const void* pointer) {
  return cuda::Address(reinterpret_cast<std::uintptr_t>(pointer));
}

std::string copying(std::size_t bytes, const char* where) {
  return fmt::format("copying {} bytes {}", bytes, where);
}

// The last copy on the stream uses the caller's memory, which becomes invalid
// once an error propagates: so nothing that could fail, not even setting the
// context, may precede the wait.
void wait_for_copy(GpuContext& context, std::string_view doing) {
  context.check(context.api().stream_synchronize(context.stream()),
                "cuStreamSynchronize", doing);
}

}  // namespace

Gpu::Gpu(const CudaApi& api, const std::string& platform,
         const GpuDevice& device, std::shared_ptr<ModuleCompiler> compiler)
    : context_(api, platform, device),
      memory_(context_),
      staging_(context_),
      order_(context_),
      compiler_(std::move(compiler)) {}

std::shared_ptr<GpuModule> Gpu::find_module(const std::string& source) {
  const std::lock_guard lock(mutex_);
  const auto found = modules_.find(source);
  return found != modules_.end() ? found->second : nullptr;
}

// One thread at a time compiles: a second one finds the first one's kernel. The
// mutex of the known modules is never held while waiting for the stream: a
// capturing thread may need it.
std::shared_ptr<GpuModule> Gpu::module(const std::string& source) {
  if (auto known = find_module(source)) return known;
  context_.refuse_while_capturing("to compile a kernel");
  const std::lock_guard one_at_a_time(compiling_);
  if (auto known = find_module(source)) return known;
  const ModuleImage image =
      compiler_->compile(source, context_.device().capability);
  auto module = std::make_shared<GpuModule>(context_, image);
  const std::lock_guard lock(mutex_);
  modules_.emplace(source, module);
  return module;
}

void Gpu::forget_modules() {
  // unloading waits, which would end a capture
  if (context_.is_capturing()) return;
  std::vector<std::shared_ptr<GpuModule>> unused;  // unloaded on return
  const std::lock_guard lock(mutex_);
  std::erase_if(modules_, [&](const auto& item) {
    const bool idle = item.second.use_count() == 1;
    if (idle) unused.push_back(item.second);
    return idle;
  });
}

void Gpu::copy_to_device(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const std::string doing = copying(bytes, "to the device");
  context_.refuse_in_capture("a copy from the host");
  to_device_ += std::int64_t(bytes);
  if (bytes <= staged_limit) {
    staging_.upload(address_of(to), bytes, doing,
                    [&](void* memory) { std::memcpy(memory, from, bytes); });
    return;
  }
  const CurrentContext current(context_);
  context_.check(context_.api().memcpy_htod_async(address_of(to), from, bytes,
                                                  context_.stream()),
                 "cuMemcpyHtoDAsync", doing);
  wait_for_copy(context_, doing);
}

void Gpu::copy_to_host(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const std::string doing = copying(bytes, "from the device");
  context_.refuse_in_capture("a copy to the host");
  to_host_ += std::int64_t(bytes);
  const CurrentContext current(context_);
  context_.check(context_.api().memcpy_dtoh_async(to, address_of(from), bytes,
                                                  context_.stream()),
                 "cuMemcpyDtoHAsync", doing);
  wait_for_copy(context_, doing);
}

void Gpu::copy_on_device(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  context_.refuse_in_recording("a copy within the device");
  const CurrentContext current(context_);
  context_.check(
      context_.api().memcpy_dtod_async(address_of(to), address_of(from), bytes,
                                       context_.stream()),
      "cuMemcpyDtoDAsync", copying(bytes, "within the device"));
}

void Gpu::fill_bytes(void* to, unsigned char value, std::size_t bytes) {
  if (bytes == 0) return;
  context_.refuse_in_recording("to fill memory");
  const CurrentContext current(context_);
  context_.check(context_.api().memset_d8_async(address_of(to), value, bytes,
                                                context_.stream()),
                 "cuMemsetD8Async", fmt::format("filling {} bytes", bytes));
}

GpuBlock::GpuBlock(std::shared_ptr<Gpu> gpu, std::size_t bytes)
    : gpu_(std::move(gpu)),
      address_(gpu_->memory().allocate(bytes)),
      bytes_(bytes) {}

void* GpuBlock::data() const {
  return reinterpret_cast<void*>(std::uintptr_t(address_));
}

void GpuBlock::reset() noexcept {
  if (gpu_ != nullptr) gpu_->memory().release(address_, bytes_);
}

void GpuBlock::swap(GpuBlock& other) noexcept {
  std::swap(gpu_, other.gpu_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
}

}  // namespace fuse
