#pragma once

#include <cstdint>
#include <source_location>
#include <string>

namespace fuse {

/// A source file's path as shown in the book: "recipes/a.cpp", without the
/// directories above the project.
std::string short_path(const std::string& file);

/// "file:line".
std::string at(const std::string& file, std::int64_t line);
std::string at(const std::source_location& place);
/// The same with the short path.
std::string short_place(const std::source_location& place);

}  // namespace fuse
