#pragma once

namespace fuse {

/// Whether the environment variable FUSEBOOK_QUICK is 1: then functions are timed
/// once, with one call, for tests of programs whose times nobody reads. Throws
/// UsageError if it is neither 1, 0 nor empty.
bool times_are_quick();

}  // namespace fuse
