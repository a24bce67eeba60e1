#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "fusebook/jit/jit.h"

namespace fuse {

// The libraries loaded by this process, by key. A key consists of two texts, so
// that a look-up need not join them.

/// The library of `prefix + source`, or nullptr if it is not loaded yet.
std::shared_ptr<Library> find_library(std::string_view prefix,
                                      std::string_view source);

/// Returns the library of `prefix + source` or, if there is none, the result of
/// `build`. Only one thread builds a key at a time; the others wait for it and
/// share its library, or its Error. Neither an exception nor a fork during a
/// build leaves another thread waiting.
std::shared_ptr<Library> find_or_build_library(
    std::string_view prefix, std::string_view source,
    const std::function<std::shared_ptr<Library>()>& build);

/// Forgets every library; those in use stay loaded. For tests and measurements
/// of the disk cache.
void forget_libraries();

}  // namespace fuse
