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
/// and launched again by one call of the driver, as torch.cuda.CUDAGraph does
/// it. The function is not run any more: nothing is recorded, guarded or bound.
///
/// A replay reads and writes the tensors that the captured call was given:
/// parameters, gradients, state (step counts go on by themselves), and numbers
/// on the GPU. It finds in them what lies there by then, so `assign` on such a
/// number, `load_checkpoint`, or a scheduler between two replays changes what
/// the next one reads; all of it happens in the order in which it was asked
/// for. Tensors must be changed in place: after `set_grad`, or `zero_grad()`
/// and a backward pass, the graph still has the old gradients, while
/// `zero_grad(false)` keeps them. Plain numbers are part of the graph as they
/// were when it was captured.
///
/// The graph keeps all of these tensors, and the kernel, as long as it lives.
/// It may be moved, not copied.
class CudaGraph {
 public:
  /// Puts the captured launch on the device's stream; waits for nothing. It
  /// counts as a call and a launch of the function. Throws Error inside of a
  /// compiled function, for a graph that was moved from, and when the device
  /// refuses.
  void replay();
  /// Replays so far.
  std::int64_t replays() const;

 private:
  friend class GraphCapture;
  CudaGraph() = default;

  std::shared_ptr<Function> function_;
  const CompiledProgram* launched_ = nullptr;
  std::int64_t bytes_ = 0;  // one launch loads and stores
  std::vector<std::shared_ptr<ListImpl>> lists_;
  std::unique_ptr<GpuGraph> graph_;
};

/// What capture_graph does around the call: a recorder of its own takes what the
/// function records, while this thread is refused what a replay would not
/// repeat. The device captures for the launch alone, so that other threads go on
/// as ever. Stays on one thread. Without `finish` nothing is kept.
class GraphCapture final : private Executor {
 public:
  /// Throws Error where capture_graph does before the call.
  explicit GraphCapture(std::shared_ptr<Function> function);

  Recorder& recorder() { return recorder_; }
  /// Captures what was recorded. Throws Error.
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
/// tensors before. It must be one launch on one GPU, or the simulated one. And
/// every number it is given, rather than has in its code, must be a tensor on
/// that GPU, such as `tensor(0.01).to(device)`: of one in host memory, or of a
/// plain number that has moved or has a scheduler, a graph would keep the value
/// of the day. Other plain numbers may stay.
///
/// Throws Error, and leaves everything as usable as before, when one of these
/// does not hold (it names the number, or what would have to be compiled or
/// uploaded), when the function reads tensors, writes to them outside of list
/// operations or needs new memory, and inside of a compiled function. What the
/// function did on the host by then stays done: counts and schedulers have gone
/// on.
///
/// Other threads may use the GPU all the while. What they do is not captured;
/// they only wait for as long as one launch is.
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
