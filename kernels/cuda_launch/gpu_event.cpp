#include "fusebook/cuda_launch/gpu_event.h"

#include <utility>

namespace fuse {
namespace {

constexpr const char* doing = "timing the device";

}  // namespace

GpuEvent::GpuEvent(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {
  GpuContext& context = gpu_->context();
  const CurrentContext current(context);
  context.check(context.api().event_create(&event_, cuda::event_default),
                "cuEventCreate", doing);
}

GpuEvent::~GpuEvent() {
  GpuContext& context = gpu_->context();
  context.quietly([&] { context.api().event_destroy(event_); });
}

void GpuEvent::record() {
  GpuContext& context = gpu_->context();
  context.refuse_in_capture("a time stamp");
  const CurrentContext current(context);
  context.check(context.api().event_record(event_, context.stream()),
                "cuEventRecord", doing);
}

bool GpuEvent::is_over() {
  GpuContext& context = gpu_->context();
  const CurrentContext current(context);
  const cuda::Result code = context.api().event_query(event_);
  if (code == cuda::not_ready) return false;
  context.check(code, "cuEventQuery", doing);
  return true;
}

void GpuEvent::wait() {
  GpuContext& context = gpu_->context();
  const CurrentContext current(context);
  context.check(context.api().event_synchronize(event_), "cuEventSynchronize",
                doing);
}

double GpuEvent::milliseconds_since(GpuEvent& begin) {
  wait();
  GpuContext& context = gpu_->context();
  const CurrentContext current(context);
  float milliseconds = 0;
  context.check(
      context.api().event_elapsed_time(&milliseconds, begin.event_, event_),
      "cuEventElapsedTime", doing);
  return double(milliseconds);
}

}  // namespace fuse
