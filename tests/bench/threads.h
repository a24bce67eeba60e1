#pragma once

namespace fuse::bench {

/// Measures what the thread pool costs and tells readings of kind "host": a
/// parallel region that does nothing, "back to back" and "after 1 ms idle" (by
/// then the threads sleep).
void measure_threads();

}  // namespace fuse::bench
