#include "fusebook/support/undefined.h"

#include <string_view>

#include "fusebook/support/error.h"

namespace fuse {
namespace {

// Where the parameters begin in "R fuse::C<T>::f(A, B) const": at the
// parenthesis that matches the last one.
std::size_t parameters_of(std::string_view text) {
  int depth = 0;
  for (std::size_t at = text.rfind(')'); at < text.size(); --at) {
    if (text[at] == ')') ++depth;
    if (text[at] == '(' && --depth == 0) return at;
  }
  return text.size();
}

std::string without_template_arguments(std::string_view text) {
  std::string name;
  int depth = 0;
  for (const char c : text) {
    if (c == '<') ++depth;
    if (depth == 0) name += c;
    if (c == '>') --depth;
  }
  return name;
}

}  // namespace

// Compilers give the full signature of the function, followed by template
// arguments, as in "[with T = float]".
std::string name_of_call(const std::source_location& place) {
  std::string_view text = place.function_name();
  text = text.substr(0, text.find(" ["));
  const std::string name =
      without_template_arguments(text.substr(0, parameters_of(text)));
  const std::size_t begin = name.rfind(' ') + 1;
  const std::string_view prefix = "fuse::";
  const std::size_t skipped =
      name.compare(begin, prefix.size(), prefix) == 0 ? prefix.size() : 0;
  return name.substr(begin + skipped);
}

void refuse_undefined(const std::source_location& call, const char* what) {
  throw Error(name_of_call(call) + ": " + what +
              " is undefined, like a gradient before backward() or after "
              "zero_grad(), or a state before the first step; check with "
              "defined()");
}

void refuse_moved_from(const std::source_location& call, const char* what) {
  throw Error(name_of_call(call) + ": " + what +
              " was moved from; use the object it was moved to");
}

void refuse_empty(const std::source_location& call, const char* what) {
  throw Error(name_of_call(call) + ": " + what + " is empty");
}

}  // namespace fuse
