#pragma once

#include <source_location>
#include <string>

namespace fuse {

/// A source file's path as the book shows it: "recipes/a.cpp", without the
/// folders above the project.
std::string short_path(const std::string& file);

/// "file:line".
std::string at(const std::source_location& place);

}  // namespace fuse
