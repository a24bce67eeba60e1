#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "fusebook/cuda/cuda_api.h"
#include "fusebook/cuda/gpu_status.h"
#include "fusebook/cuda/stream_gate.h"

namespace fuse {

/// One device in use: its primary context, retained while this lives, and the
/// single stream on which all our work runs. Since all work is in stream order,
/// memory can be reused as soon as it was released, and a copy never overtakes
/// the kernel that reads what it overwrites.
///
/// Thread-safe. Errors name the device, the activity, the function, its code
/// and what to do. After an error that destroys the context (such as an illegal
/// address) every later use throws Error saying so.
class GpuContext {
 public:
  /// Throws Error. `platform` is the part before the colon in "cuda:0".
  GpuContext(const CudaApi& api, const std::string& platform,
             const GpuDevice& device);
  ~GpuContext();
  GpuContext(const GpuContext&) = delete;
  GpuContext& operator=(const GpuContext&) = delete;

  const CudaApi& api() const { return api_; }
  /// "cuda:0".
  const std::string& label() const { return label_; }
  const GpuDevice& device() const { return device_; }
  cuda::Stream stream() const { return stream_; }
  /// What the driver says of the device now. Throws Error.
  int attribute(int which, std::string_view doing);

  /// Throws Error unless `code` is success. `doing` describes the activity:
  /// "copying 512 bytes to the device".
  void check(cuda::Result code, const char* call, std::string_view doing) {
    if (code != cuda::success) fail(code, call, doing);
  }
  /// Waits until everything on the stream has run.
  void synchronize(std::string_view doing = "waiting for the device");

  /// True after an error that destroyed the context.
  bool is_lost() const { return is_lost_; }

  // -- while a step is captured in a graph (see gpu_graph.h)
  /// Tracks the users of the stream, and the thread capturing it exclusively.
  StreamGate& gate() { return gate_; }
  /// True while this thread captures a step, or records one for a capture.
  bool is_capturing() const;
  /// Throws Error if this thread captures a step: a replay would not repeat
  /// `what`, and running the step once beforehand makes it unnecessary.
  void refuse_while_capturing(const std::string& what) const;
  /// The same, where `what` can only be left out of the step.
  void refuse_in_capture(const std::string& what) const;
  /// The same while the step is only recorded: `what` would run now, once.
  void refuse_in_recording(const char* what) const;
  /// Keeps an object alive as long as the graph being captured.
  void keep_for_graph(std::shared_ptr<const void> used);

  /// Calls `give_back()` with the context current, for destructors: failures
  /// are ignored, and nothing is called while the process exits, when the
  /// driver may be gone.
  template <class Call>
  void quietly(Call give_back) noexcept {
    if (is_over()) return;
    const StreamHold hold(gate_, StreamHold::Kind::use);
    if (!push_quietly()) return;
    give_back();
    pop();
  }

 private:
  friend class GpuCapture;
  friend class CurrentContext;

  GpuContext(const CudaApi& api, const GpuDevice& device, std::string label);
  [[noreturn]] void fail(cuda::Result code, const char* call,
                         std::string_view doing);
  static bool is_over() noexcept;
  void push();
  bool push_quietly() noexcept;
  void pop() noexcept;

  const CudaApi& api_;
  const GpuDevice device_;
  const std::string label_;
  cuda::Device handle_ = 0;
  bool retained_ = false;
  cuda::Context context_ = nullptr;
  cuda::Stream stream_ = nullptr;
  std::atomic<bool> is_lost_ = false;
  StreamGate gate_;
  std::mutex mutex_;
  std::string lost_by_;
  std::vector<std::shared_ptr<const void>> captured_;
};

/// Makes the context current for this thread, and restores the previous one on
/// destruction; waits while another thread captures a step. Throws Error if the
/// context was lost.
class CurrentContext {
 public:
  explicit CurrentContext(GpuContext& context)
      : context_(context), hold_(context.gate(), StreamHold::Kind::use) {
    context_.push();
  }
  ~CurrentContext() { context_.pop(); }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  GpuContext& context_;
  const StreamHold hold_;
};

}  // namespace fuse
