#include "fusebook/cuda/stream_gate.h"

namespace fuse {
namespace {

thread_local StreamHold* innermost = nullptr;

}  // namespace

StreamHold::StreamHold(StreamGate& gate, Kind kind)
    : gate_(gate), kind_(kind), outer_(innermost) {
  open();
  innermost = this;
}

StreamHold::~StreamHold() {
  unlink();
  if (!locked_) return;
  if (kind_ == Kind::use) {
    gate_.users_.unlock_shared();
    return;
  }
  gate_.users_.unlock();
  gate_.is_wanted_ = false;
  gate_.capture_.unlock();
}

void StreamHold::open() {
  if (kind_ == Kind::record) return;
  if (kind_ == Kind::capture) {
    gate_.capture_.lock();
    gate_.is_wanted_ = true;
    gate_.users_.lock();
  } else {
    if (has(gate_, Kind::use) || has(gate_, Kind::capture)) return;
    if (gate_.is_wanted_) {
      const std::lock_guard wait(gate_.capture_);
    }
    gate_.users_.lock_shared();
  }
  locked_ = true;
}

// Usually it is the innermost one.
void StreamHold::unlink() {
  StreamHold** link = &innermost;
  while (*link != this) link = &(*link)->outer_;
  *link = outer_;
}

bool StreamHold::has(const StreamGate& gate, Kind kind) {
  for (const StreamHold* hold = innermost; hold != nullptr;
       hold = hold->outer_) {
    if (&hold->gate_ == &gate && hold->kind_ == kind) return true;
  }
  return false;
}

}  // namespace fuse
