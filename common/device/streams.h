#pragma once

#include "fusebook/device/device.h"

namespace fuse {

// All work of the library on a GPU is in one stream of its own. These let it take
// turns with the streams of other CUDA code, without a wait of the host. Memory of a
// tensor that is dropped is used again in that stream: where other code may still be
// reading it, call `run_after` first.

/// Work on `device` that is issued from now on runs after what is on `stream` by
/// now, so that a step reads gradients which other code is still computing there.
/// `stream` is a cudaStream_t or CUstream of that GPU; null stands for CUDA's legacy
/// stream, which is current where code names none. Does nothing for the CPU and the
/// simulated GPU, which have no streams. Throws Error if the stream is being captured
/// in a CUDA graph, and within `capture_graph`.
void run_after(const Device& device, void* stream);

/// What is put on `stream` from now on runs after all work on `device` that was
/// issued so far, so that other code reads what a step has written. Otherwise like
/// `run_after`.
void run_before(const Device& device, void* stream);

}  // namespace fuse
