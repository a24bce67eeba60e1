#include "fusebook/cuda/stream_order.h"

#include "fusebook/support/error.h"

namespace fuse {
namespace {

constexpr const char* taking_turns = "taking turns with another stream";

}  // namespace

StreamOrder::~StreamOrder() {
  if (event_ == nullptr) return;
  context_.quietly([&] { context_.api().event_destroy(event_); });
}

void StreamOrder::run_after(cuda::Stream stream) {
  order(stream, context_.stream());
}

void StreamOrder::run_before(cuda::Stream stream) {
  order(context_.stream(), stream);
}

// A wait is for the event as it was recorded last, so one serves for all.
void StreamOrder::order(cuda::Stream first, cuda::Stream second) {
  context_.refuse_in_capture("turns with another stream");
  const CurrentContext current(context_);
  const CudaApi& api = context_.api();
  const std::lock_guard lock(mutex_);
  refuse_captured(first == context_.stream() ? second : first);
  if (event_ == nullptr) {
    context_.check(api.event_create(&event_, cuda::event_disable_timing),
                   "cuEventCreate", taking_turns);
  }
  context_.check(api.event_record(event_, first), "cuEventRecord",
                 taking_turns);
  context_.check(api.stream_wait_event(second, event_, 0), "cuStreamWaitEvent",
                 taking_turns);
}

void StreamOrder::refuse_captured(cuda::Stream theirs) {
  int status = 0;
  context_.check(context_.api().stream_is_capturing(theirs, &status),
                 "cuStreamIsCapturing", taking_turns);
  if (status == 0) return;
  throw Error(context_.label() +
              ": the stream to take turns with is being captured in a CUDA "
              "graph, which cannot hold work of this library; step outside of "
              "the capture");
}

}  // namespace fuse
