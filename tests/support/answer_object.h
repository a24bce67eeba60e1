#pragma once

#include <map>
#include <string>

#include "fusebook/jit/host_compiler.h"
#include "support/jit_testing.h"

namespace jit_testing {

/// A shared object whose `answer()` returns `value`, made once per program by the
/// machine's own compiler: what fake compilers hand out.
inline const std::string& answer_object(int value) {
  static std::map<int, std::string> made;
  std::string& bytes = made[value];
  if (bytes.empty()) {
    const TempDir dir;
    const Env fusebook_cxx("FUSEBOOK_CXX", nullptr);
    const Env cxx("CXX", nullptr);
    bytes = fuse::compile_object(fuse::find_host_compiler(),
                                 answer_source(value), dir.path());
  }
  return bytes;
}

}  // namespace jit_testing
