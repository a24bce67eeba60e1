#pragma once

#include <string>
#include <vector>

namespace fuse {

/// The name that somebody who wrote `name` most likely meant; empty where none
/// of them is close.
std::string nearest(const std::string& name,
                    const std::vector<std::string>& names);

}  // namespace fuse
