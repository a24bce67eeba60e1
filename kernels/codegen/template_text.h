#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace fuse {

/// What goes into the hole "@name@" of a template.
struct Hole {
  std::string_view name;
  std::string text;
};

/// A template with its holes filled. A hole alone on a line takes all lines of
/// its text, indented as it is; blank lines and those for the preprocessor stay
/// where they are, and where there is no text the line goes. Other holes are
/// filled where they stand. Throws Error for a hole without text, and for text
/// without a hole.
std::string fill(std::string_view text, std::initializer_list<Hole> holes);

}  // namespace fuse
