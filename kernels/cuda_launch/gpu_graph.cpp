#include "fusebook/cuda_launch/gpu_graph.h"

#include <utility>

#include "fusebook/support/error.h"

namespace fuse {
namespace {

constexpr const char* capturing = "capturing a step";

}  // namespace

GpuGraph::~GpuGraph() {
  GpuContext& context = gpu_->context();
  const CudaApi& api = context.api();
  context.quietly([&] {
    // A replay in flight still completes, and later writes to its tables are
    // ordered after it on the stream.
    if (exec_ != nullptr) api.graph_exec_destroy(exec_);
    if (graph_ != nullptr) api.graph_destroy(graph_);
  });
}

void GpuGraph::launch() {
  GpuContext& context = gpu_->context();
  context.refuse_in_capture("to replay another step");
  const CurrentContext current(context);
  context.check(context.api().graph_launch(exec_, context.stream()),
                "cuGraphLaunch", "replaying a captured step");
  ++launches_;
}

GpuCapture::GpuCapture(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {
  GpuContext& context = gpu_->context();
  if (StreamHold::has(context.gate(), StreamHold::Kind::capture)) {
    throw Error(
        context.label() +
        ": another step is already being captured; capture one at a time");
  }
  hold_.emplace(context.gate(), StreamHold::Kind::capture);
  const CurrentContext current(context);
  context.check(context.api().stream_begin_capture(
                    context.stream(), cuda::capture_mode_thread_local),
                "cuStreamBeginCapture", capturing);
}

GpuCapture::~GpuCapture() {
  if (!hold_) return;
  cuda::Graph graph = nullptr;
  GpuContext& context = gpu_->context();
  context.quietly([&] {
    context.api().stream_end_capture(context.stream(), &graph);
    if (graph != nullptr) context.api().graph_destroy(graph);
  });
  context.captured_.clear();
}

cuda::Result GpuCapture::end(GpuGraph& made) {
  GpuContext& context = gpu_->context();
  const CurrentContext current(context);
  const cuda::Result code =
      context.api().stream_end_capture(context.stream(), &made.graph_);
  made.used_ = std::exchange(context.captured_, {});
  return code;
}

std::unique_ptr<GpuGraph> GpuCapture::finish() {
  GpuContext& context = gpu_->context();
  std::unique_ptr<GpuGraph> made(new GpuGraph(gpu_));
  const cuda::Result code = end(*made);
  hold_.reset();
  const CurrentContext current(context);
  context.check(code, "cuStreamEndCapture", capturing);
  context.check(context.api().graph_instantiate(&made->exec_, made->graph_, 0),
                "cuGraphInstantiateWithFlags", capturing);
  return made;
}

}  // namespace fuse
