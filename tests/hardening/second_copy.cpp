// A module with a copy of the library of its own: what an extension module that is
// linked with it statically is to the process that loads it.
#include <memory>
#include <vector>

#include "fusebook/jit/jit.h"
#include "fusebook/jit/loaded_libraries.h"
#include "support/jit_testing.h"

/// What a library answers that this copy compiles and keeps loaded; 0 if it fails.
extern "C" __attribute__((visibility("default"))) int second_copy_answer(
    int value) {
  static std::vector<std::shared_ptr<fuse::Library>> kept;
  try {
    kept.push_back(fuse::build_library(jit_testing::answer_source(value)));
    return reinterpret_cast<int (*)()>(kept.back()->symbol("answer"))();
  } catch (...) {
    return 0;
  }
}
