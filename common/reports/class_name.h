#pragma once

#include <string>
#include <typeinfo>

namespace fuse {

/// The name of a class without its namespaces, such as "Adam".
std::string class_name(const std::type_info& type);

}  // namespace fuse
