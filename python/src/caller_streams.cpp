#include "caller_streams.h"

#include <algorithm>
#include <cstdint>

#include "arrays.h"
#include "fusebook/device/backend.h"
#include "fusebook/support/error.h"

namespace fuse::python {
namespace {

bool is_on_gpu(const DLDevice& device) {
  return device.device_type == kDLCUDA || device.device_type == kDLCUDAManaged;
}

// That of a library without a table lends for CUDA's default stream.
void* stream_of(PyObject* array, const DLDevice& device) {
  const DLPackExchangeAPI* const table = exchange_of(Py_TYPE(array));
  void* stream = nullptr;
  if (table == nullptr || table->current_work_stream == nullptr) return stream;
  if (table->current_work_stream(kDLCUDA, device.device_id, &stream) == 0) {
    return stream;
  }
  throw Error(take_exception());
}

void give_way(const Device& device, void* stream) noexcept {
  try {
    backend_of(device).run_before(device.index, stream);
  } catch (const Error&) {
    // The device is lost, which whoever uses it next is told.
  }
}

}  // namespace

thread_local CallerStreams* CallerStreams::current_ = nullptr;

CallerStreams::~CallerStreams() {
  current_ = outer_;
  for (const auto& [device, stream] : joined_) give_way(device, stream);
}

void CallerStreams::join(PyObject* array, const DLDevice& device) {
  if (!is_on_gpu(device) || current_ == nullptr) return;
  current_->add({Device::Kind::cuda, device.device_id},
                stream_of(array, device));
}

void CallerStreams::add(const Device& device, void* stream) {
  const std::pair joined(device, stream);
  if (std::find(joined_.begin(), joined_.end(), joined) != joined_.end()) {
    return;
  }
  backend_of(device).run_after(device.index, stream);
  joined_.push_back(joined);
}

Borrower::Borrower(const Device& device, long long stream)
    : device_(device),
      asked_(stream != -1),
      stream_(reinterpret_cast<void*>(std::intptr_t(asked_ ? stream : 0))) {
  if (takes_turns() && stream == 0) {
    throw Error(
        "__dlpack__: stream 0 could be one of two; use 1 for the "
        "default stream, or 2 for that of each thread");
  }
}

bool Borrower::takes_turns() const { return !device_.is_cpu(); }

void Borrower::may_begin() const {
  if (takes_turns() && asked_) {
    backend_of(device_).run_before(device_.index, stream_);
  }
}

void Borrower::is_done() const noexcept {
  if (!takes_turns()) return;
  try {
    backend_of(device_).run_after(device_.index, stream_);
  } catch (const Error&) {
    // As in give_way.
  }
}

}  // namespace fuse::python
