// The one function of fmt that all other sources call, compiled here alone: they see
// its declarations (fuse_fmt in CMakeLists.txt), and no program needs fmt to run.
#ifndef FMT_HEADER_ONLY
#define FMT_HEADER_ONLY 1
#endif
#include <fmt/core.h>

#include <string>

namespace fuse {
namespace {

[[maybe_unused,
  gnu::used]] std::string (*const compiled)(fmt::string_view,
                                            fmt::format_args) = &fmt::vformat;

}  // namespace
}  // namespace fuse
