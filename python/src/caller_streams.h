#pragma once

#include <Python.h>

#include <utility>
#include <vector>

#include "fusebook/device/device.h"
#include "fusebook/dlpack/dlpack_abi.h"

namespace fuse::python {

/// The turns of a call with the libraries whose arrays on a GPU it takes: what the
/// call launches runs after what is on their current streams, and what they issue
/// afterwards runs after the call's. The host never waits.
class CallerStreams {
 public:
  CallerStreams() : outer_(current_) { current_ = this; }
  ~CallerStreams();
  CallerStreams(const CallerStreams&) = delete;
  CallerStreams& operator=(const CallerStreams&) = delete;

  /// Lets what this thread's call launches run after what the library of `array` has
  /// issued by now: call it when nothing more may be issued for the call. Does nothing for host memory. Throws Error if that library is capturing
  /// a CUDA graph.
  static void join(PyObject* array, const DLDevice& device);

 private:
  void add(const Device& device, void* stream);

  static thread_local CallerStreams* current_;
  CallerStreams* outer_;
  std::vector<std::pair<Device, void*>> joined_;
};

/// Who gets a tensor of ours, and on which stream they use it.
class Borrower {
 public:
  /// As `__dlpack__(stream=...)` names it: 1 is CUDA's legacy stream, 2 the one of
  /// each thread, -1 asks for no turns, and a larger number is a stream's address.
  /// Throws Error for any other.
  Borrower(const Device& device, long long stream);

  /// What they issue from now on runs after our work so far. Throws Error like
  /// CallerStreams::join.
  void may_begin() const;
  /// What we issue from now on runs after what they put on CUDA's legacy stream and
  /// on streams that wait for it. Their own stream may be gone by now.
  void is_done() const noexcept;

 private:
  bool takes_turns() const;

  Device device_;
  bool asked_;
  void* stream_;
};

/// Lets `borrower` begin, and be done when `lent` is given back.
template <class Managed>
void take_turns(Managed* lent, const Borrower& borrower) {
  struct Loan {
    Borrower borrower;
    void* context;
    void (*deleter)(Managed*);
  };
  borrower.may_begin();
  lent->manager_ctx = new Loan{borrower, lent->manager_ctx, lent->deleter};
  lent->deleter = [](Managed* self) {
    auto* const loan = static_cast<Loan*>(self->manager_ctx);
    loan->borrower.is_done();
    self->manager_ctx = loan->context;
    self->deleter = loan->deleter;
    delete loan;
    self->deleter(self);
  };
}

}  // namespace fuse::python
