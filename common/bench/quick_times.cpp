#include "fusebook/bench/quick_times.h"

#include <fmt/core.h>

#include <cstdlib>
#include <string_view>

#include "fusebook/support/error.h"

namespace fuse {

bool times_are_quick() {
  const char* const text = std::getenv("FUSEBOOK_QUICK");
  const std::string_view value = text == nullptr ? "" : text;
  if (value.empty() || value == "0") return false;
  if (value == "1") return true;
  throw UsageError(fmt::format(
      "FUSEBOOK_QUICK is '{}', which is neither 1 nor 0: set it to 1 "
      "to time everything once, or unset it",
      value));
}

}  // namespace fuse
