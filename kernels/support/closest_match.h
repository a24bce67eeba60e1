#pragma once

#include <string>
#include <vector>

namespace fuse {

/// The known name most likely meant by `name`; empty if none is close.
std::string nearest(const std::string& name,
                    const std::vector<std::string>& names);

}  // namespace fuse
