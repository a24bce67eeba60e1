#include "fusebook/reports/class_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace fuse {

std::string class_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  const std::string full = status == 0 ? demangled.get() : type.name();
  const std::size_t space = full.rfind("::");
  return space == std::string::npos ? full : full.substr(space + 2);
}

}  // namespace fuse
