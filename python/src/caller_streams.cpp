#include "caller_streams.h"

#include <fmt/core.h>

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

// A library without a table has made CUDA's legacy stream wait for its own.
void* stream_of(PyObject* array, const DLDevice& device) {
  const DLPackExchangeAPI* const table = exchange_of(Py_TYPE(array));
  void* stream = nullptr;
  if (table == nullptr || table->current_work_stream == nullptr) return stream;
  if (table->current_work_stream(kDLCUDA, device.device_id, &stream) == 0) {
    return stream;
  }
  throw Error(take_exception());
}

// True if `call` throws nothing.
template <class Call>
bool succeeds(Call call) noexcept {
  try {
    call();
    return true;
  } catch (...) {
    return false;
  }
}

// A stream that cannot wait, since it is being captured by now, finds all done. If
// the device is lost, whoever uses it next is told.
void give_way(const Device& device, void* stream) noexcept {
  DeviceBackend& backend = backend_of(device);
  if (succeeds([&] { backend.run_before(device.index, stream); })) return;
  succeeds([&] { backend.synchronize(device.index); });
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
  backend_of(device).run_after(device.index, stream);
  const std::pair joined(device, stream);
  if (std::ranges::find(joined_, joined) == joined_.end()) {
    joined_.push_back(joined);
  }
}

Borrower::Borrower(const Device& device, long long stream)
    : device_(device),
      asked_(stream != -1),
      stream_(reinterpret_cast<void*>(std::intptr_t(asked_ ? stream : 0))) {
  if (takes_turns() && asked_ && stream <= 0) {
    throw Error(fmt::format(
        "__dlpack__: stream {} is none; use 1 for CUDA's legacy stream, 2 for "
        "that of each thread, -1 for no turns, or a stream's address",
        stream));
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
  succeeds([&] { backend_of(device_).run_after(device_.index, nullptr); });
}

}  // namespace fuse::python
