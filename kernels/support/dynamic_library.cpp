#include "fusebook/support/dynamic_library.h"

#include <dlfcn.h>

namespace fuse {

CallLibrary::CallLibrary(const std::string& name)
    : handle_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ != nullptr) return;
  const char* const why = dlerror();
  problem_ = why != nullptr ? why : "no reason given";
}

void* CallLibrary::find(const char* symbol) {
  void* const address = dlsym(handle_, symbol);
  if (address == nullptr && missing_.empty()) missing_ = symbol;
  return address;
}

}  // namespace fuse
