#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "fusebook/jit/jit.h"

namespace fuse {

// The libraries that this process has loaded, by key. A key is two texts, so
// that a look-up need not join them.

/// The library of `prefix + source`, or nullptr when it is not loaded yet.
std::shared_ptr<Library> find_library(std::string_view prefix,
                                      std::string_view source);

/// Returns the library of `prefix + source`; when there is none, the one that
/// `build` makes. Only one thread builds a key at a time; the others wait for
/// it and share its library, or its Error. Neither an exception nor a fork
/// while a build goes on leaves anybody waiting.
std::shared_ptr<Library> find_or_build_library(
    std::string_view prefix, std::string_view source,
    const std::function<std::shared_ptr<Library>()>& build);

/// Forgets every library; those in use live on. For tests and measurements of
/// the disk cache.
void forget_libraries();

}  // namespace fuse
