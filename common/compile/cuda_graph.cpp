#include "fusebook/compile/cuda_graph.h"

#include <string>

#include "fusebook/device/allocator.h"
#include "fusebook/device/device_registry.h"
#include "fusebook/device/gpu_backend.h"
#include "fusebook/programs/compiled_program.h"
#include "fusebook/support/error.h"

namespace fuse {
namespace {

void refuse_in_recording(const char* what) {
  if (Recorder::current() == nullptr) return;
  throw Error(std::string(what) +
              " was called inside a compiled function, which only records; "
              "call it outside");
}

Device gpu_for(const Function* given) {
  refuse_in_recording("capture_graph");
  if (given == nullptr) throw Error("capture_graph: the function is null");
  const Function& function = *given;
  const Device device = function.device();
  if (find_gpu(device) != nullptr) return device;
  throw Error(function.where() + " ran on " +
              (device.is_cpu() ? "the CPU" : to_string(device)) +
              ", but CUDA graphs need a GPU; move its tensors to one with "
              "to() (to \"cuda-sim\" without a GPU), and call it once "
              "before capturing it");
}

}  // namespace

void CudaGraph::replay() {
  refuse_in_recording("CudaGraph::replay");
  if (graph_ == nullptr) {
    throw Error("this CudaGraph was moved from, so there is nothing to replay");
  }
  graph_->launch();
  function_->count_replay(*launched_, counts_);
}

std::int64_t CudaGraph::replays() const {
  return graph_ == nullptr ? 0 : graph_->launches();
}

GraphCapture::GraphCapture(std::shared_ptr<Function> function)
    : device_(gpu_for(function.get())),
      gpu_(gpu_of(device_)),
      refuses_(gpu_->context().gate(), StreamHold::Kind::record),
      recorder_(*this, true) {
  made_.function_ = std::move(function);
}

CudaGraph GraphCapture::finish() {
  recorder_.finish();
  if (made_.launched_ == nullptr) {
    throw Error(made_.function_->where() +
                " did not operate on lists of tensors in the call to be "
                "captured, so there is nothing to replay");
  }
  return std::move(made_);
}

void GraphCapture::execute(const Program& program) {
  Function& function = *made_.function_;
  if (const Device here = device_of(program); here != device_) {
    throw Error(function.where() + " was last called on " + to_string(device_) +
                ", but is being captured with tensors on " + to_string(here) +
                "; call it with these tensors first");
  }
  const CompiledProgram& launched = function.bind_captured(program);
  if (launched.table.rows().empty()) return;
  GpuCapture capture(gpu_);
  launched.kernel->launch(launched.table);
  made_.graph_ = capture.finish();
  made_.launched_ = &launched;
  made_.counts_ = Function::counted(launched);
  made_.lists_.assign(recorder_.lists().begin(), recorder_.lists().end());
  // holds the gradients too
  for (const auto& list : made_.lists_) {
    for (const Tensor& tensor : list->handles()) {
      made_.memory_.push_back(tensor.impl()->storage);
    }
  }
}

void GraphCapture::graph_break(const std::string& why) {
  throw Error(made_.function_->where() +
              " cannot be captured as one launch: " + why +
              "; a replay would not repeat that, so do it outside the "
              "function");
}

// The context refuses the same on this thread; this also names the function.
void GraphCapture::outside_write(const TensorImpl& tensor) {
  const Device& device = tensor.storage->device;
  if (device.is_cpu()) return;
  throw Error(made_.function_->where() + " writes to a tensor on " +
              to_string(device) +
              " outside list operations, which a replay would not repeat; "
              "do that outside the function");
}

}  // namespace fuse
