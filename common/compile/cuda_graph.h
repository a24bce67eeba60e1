#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/compile/compiled_function.h"
#include "fusebook/cuda_launch/gpu_graph.h"
#include "fusebook/trace/recorder.h"

namespace fuse {

/// The launch of one call of a compiled function, captured by `capture_graph`
/// and replayed by one driver call, like torch.cuda.CUDAGraph. A replay does
/// not run the function: nothing is recorded, guarded or bound.
///
/// A replay reads and writes the tensors of the captured call: parameters,
/// gradients, state (step counts keep advancing), and numbers on the GPU. It
/// sees their current contents, so `assign` on such a number,
/// `load_checkpoint`, or a scheduler between two replays affects the next one;
/// all of it happens in the order in which it was issued. Tensors must be
/// changed in place: after `set_grad`, or `zero_grad()` and a backward pass,
/// the graph still uses the old gradients, whereas `zero_grad(false)` keeps
/// them, and after `set_data` or `flatten_` the old memory. Plain numbers keep the values they had at the capture.
///
/// The graph keeps all of this memory and the kernel alive. It may be moved,
/// but not copied.
class CudaGraph {
 public:
  /// Enqueues the captured launch on the device's stream without waiting.
  /// Counts as a call and a launch of the function. Throws Error inside a
  /// compiled function, for a moved-from graph, and if the device refuses.
  void replay();
  /// Number of replays so far.
  std::int64_t replays() const;

 private:
  friend class GraphCapture;
  CudaGraph() = default;

  std::shared_ptr<Function> function_;
  const CompiledProgram* launched_ = nullptr;
  Counters counts_;  // of one replay
  std::vector<std::shared_ptr<ListImpl>> lists_;
  std::vector<std::shared_ptr<Storage>> memory_;  // lists may be moved
  std::unique_ptr<GpuGraph> graph_;
};

/// What capture_graph does around the call: a separate recorder takes what the
/// function records, and anything on this thread that a replay would not repeat
/// is refused. The device captures only during the launch, so other threads
/// continue as usual. Must stay on one thread. Without `finish` nothing is
/// kept.
class GraphCapture final : private Executor {
 public:
  /// Throws Error for whatever capture_graph rejects before the call.
  explicit GraphCapture(std::shared_ptr<Function> function);

  Recorder& recorder() { return recorder_; }
  /// Captures what was recorded. May throw Error.
  CudaGraph finish();

 private:
  void execute(const Program& program) override;
  void graph_break(const std::string& why) override;
  const Function* function() const override { return made_.function_.get(); }
  void outside_write(const TensorImpl& tensor) override;

  CudaGraph made_;
  Device device_;
  std::shared_ptr<Gpu> gpu_;
  StreamHold refuses_;
  Recorder recorder_;
};

/// Captures one call of a compiled function in a CUDA graph:
///
///     auto step = compile([&] { adam.step(); });
///     step();  // compiles the kernel, puts its table on the GPU
///     CudaGraph graph = capture_graph(step);
///     graph.replay();  // launches the whole step
///
/// The function is called once, with `args`, for what it records. Nothing runs
/// on the GPU before the first replay, but whatever the function does on the
/// host happens now, once, and no replay repeats it: `Optimizer::steps()`
/// counts this call, and schedulers belong outside.
///
/// The call must be ready to launch: the same function was called on the same
/// tensors before. It must be a single launch on one GPU, real or simulated.
/// Every number that is passed to the kernel, rather than compiled into it,
/// must be a tensor on that GPU, such as `tensor(0.01).to(device)`: a tensor in
/// host memory, or a plain number that has moved or has a scheduler, would be
/// frozen at its current value. Other plain numbers may stay.
///
/// Throws Error, and leaves everything as usable as before, if one of these
/// conditions fails (the message names the number, or what would have to be
/// compiled or uploaded), if the function reads tensors, writes to them outside
/// list operations or needs new memory, and inside a compiled function.
/// Host-side effects of the function up to then remain: counts and schedulers
/// have advanced.
///
/// Other threads may use the GPU meanwhile. Their work is not captured; they
/// wait only for the duration of one launch.
template <class F, class... Args>
CudaGraph capture_graph(Compiled<F>& function, Args&&... args) {
  GraphCapture capture(function.function());
  {
    const Recording recording(capture.recorder());
    static_cast<void>(function(std::forward<Args>(args)...));
  }
  return capture.finish();
}

}  // namespace fuse
