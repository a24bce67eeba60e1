#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace fuse {

/// A value of a recipe's results.
using ResultValue = std::variant<bool, std::int64_t, double, std::string>;

}  // namespace fuse
