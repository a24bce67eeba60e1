#include "fusebook/cuda/gpu_context.h"

#include <fmt/core.h>

#include <cstdlib>
#include <utility>

#include "fusebook/cuda/gpu_error.h"

namespace fuse {
namespace {

// Set when the process begins to exit. Handlers run in reverse order, so this
// one runs before those that the driver had registered earlier.
std::atomic<bool> is_ending = false;

void watch_for_the_end() {
  static const int registered = std::atexit([] { is_ending = true; });
  static_cast<void>(registered);
}

}  // namespace

GpuContext::GpuContext(const CudaApi& api, const GpuDevice& device,
                       std::string label)
    : api_(api), device_(device), label_(std::move(label)) {}

// Since the delegated constructor has completed, a throw below runs the
// destructor.
GpuContext::GpuContext(const CudaApi& api, const std::string& platform,
                       const GpuDevice& device)
    : GpuContext(api, device, fmt::format("{}:{}", platform, device.ordinal)) {
  constexpr const char* doing = "starting the device";
  check(api.device_get(&handle_, device.ordinal), "cuDeviceGet", doing);
  check(api.primary_ctx_retain(&context_, handle_), "cuDevicePrimaryCtxRetain",
        doing);
  retained_ = true;
  watch_for_the_end();
  const CurrentContext current(*this);
  check(api.stream_create(&stream_, cuda::stream_non_blocking),
        "cuStreamCreate", doing);
}

GpuContext::~GpuContext() {
  if (stream_ != nullptr) {
    quietly([&] { api_.stream_destroy(stream_); });
  }
  if (retained_ && !is_ending) api_.primary_ctx_release(handle_);
}

void GpuContext::push() {
  if (is_lost_) {
    const std::lock_guard lock(mutex_);
    throw Error(label_ +
                " can no longer be used: its context was lost during " +
                lost_by_ + "; restart the program");
  }
  check(api_.ctx_push(context_), "cuCtxPushCurrent", "switching to the device");
}

int GpuContext::attribute(int which, std::string_view doing) {
  int value = 0;
  check(api_.device_get_attribute(&value, which, handle_),
        "cuDeviceGetAttribute", doing);
  return value;
}

bool GpuContext::is_over() noexcept { return is_ending; }

// A call may report the failure of an earlier one, so try once more.
bool GpuContext::push_quietly() noexcept {
  return api_.ctx_push(context_) == cuda::success ||
         api_.ctx_push(context_) == cuda::success;
}

void GpuContext::pop() noexcept {
  cuda::Context popped = nullptr;
  api_.ctx_pop(&popped);
}

void GpuContext::fail(cuda::Result code, const char* call,
                      std::string_view doing) {
  const std::string what =
      std::string(call) + " failed with " + code_text(api_, code);
  std::string message = label_ + ": " + std::string(doing) + ": " + what;
  if (is_sticky(code)) {
    const std::lock_guard lock(mutex_);
    if (!is_lost_) lost_by_ = "'" + std::string(doing) + "', where " + what;
    is_lost_ = true;
    message +=
        "; the device's context is lost, and with it everything in its memory: "
        "nothing can run there until the program is restarted. The cause may "
        "be an earlier launch; compute-sanitizer finds it";
  } else if (const auto advice = advice_for(code); !advice.empty()) {
    message += "; " + std::string(advice);
  }
  throw Error(message);
}

void GpuContext::synchronize(std::string_view doing) {
  refuse_in_capture("to wait for the device");
  const CurrentContext current(*this);
  check(api_.stream_synchronize(stream_), "cuStreamSynchronize", doing);
}

bool GpuContext::is_capturing() const {
  return StreamHold::has(gate_, StreamHold::Kind::record) ||
         StreamHold::has(gate_, StreamHold::Kind::capture);
}

void GpuContext::refuse_in_recording(const char* what) const {
  if (!StreamHold::has(gate_, StreamHold::Kind::record)) return;
  if (StreamHold::has(gate_, StreamHold::Kind::capture)) return;
  refuse_in_capture(what);
}

void GpuContext::refuse_while_capturing(const std::string& what) const {
  if (!is_capturing()) return;
  throw Error(label_ + ": a step is being captured and needs " + what +
              ", which a replay would not repeat; run the step once before "
              "capturing it, and change nothing in between");
}

void GpuContext::refuse_in_capture(const std::string& what) const {
  if (!is_capturing()) return;
  throw Error(label_ + ": a step is being captured and needs " + what +
              ", which a replay would not repeat; do that outside the step, "
              "before or after its replays");
}

void GpuContext::keep_for_graph(std::shared_ptr<const void> used) {
  const std::lock_guard lock(mutex_);
  captured_.push_back(std::move(used));
}

}  // namespace fuse
