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

/// One device in use: its primary context, retained as long as this lives, and
/// the one stream on which everything of ours runs. Since all work is in the
/// order of that stream, memory can be used again as soon as it was given back,
/// and a copy never overtakes the kernel that reads what it overwrites.
///
/// Safe to use from several threads. Errors name the device, what was being
/// done, the call, its code and what to do. After an error that destroys the
/// context (an illegal address, say) every later use is an Error that says so.
class GpuContext {
 public:
  /// Throws Error. `platform` is the word before the colon in "cuda:0".
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

  /// Throws Error unless `code` is success. `doing` says what was being done:
  /// "copying 512 bytes to the device".
  void check(cuda::Result code, const char* call, std::string_view doing) {
    if (code != cuda::success) fail(code, call, doing);
  }
  /// Waits until everything on the stream has run.
  void synchronize(std::string_view doing = "waiting for the device");

  /// True after an error that destroyed the context.
  bool is_lost() const { return is_lost_; }

  // -- while a step is captured in a graph (see gpu_graph.h)
  /// Who uses the stream, and which thread has it alone to capture.
  StreamGate& gate() { return gate_; }
  /// True while this thread captures a step, or records one for a capture.
  bool is_capturing() const;
  /// Throws Error when this thread captures a step; `what` would be lost in it,
  /// and running the step before would make it ready.
  void refuse_while_capturing(const std::string& what) const;
  /// Likewise, where nothing but leaving it out would help.
  void refuse_in_capture(const std::string& what) const;
  /// Likewise while the step is only recorded: `what` would run now, once.
  void refuse_in_recording(const char* what) const;
  /// Keeps something alive as long as the graph that is being captured.
  void keep_for_graph(std::shared_ptr<const void> used);

  /// Calls `give_back()` with the context current, for destructors: a failure
  /// is ignored, and nothing is called while the process ends and the driver
  /// may be gone.
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

/// Makes the context current for this thread, and at the end what was current
/// before; waits while another thread captures a step. Throws Error when the
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
