// Two copies of the library in one process, as of a program and of an extension
// module it loads: each runs the kernels that it compiled itself.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "fusebook/jit/jit.h"
#include "fusebook/jit/loaded_libraries.h"
#include "support/jit_testing.h"

using namespace jit_testing;

TEST_CASE("another copy's kernels are not taken for one's own") {
  const Env no_cache("FUSEBOOK_CACHE_DIR", "off");
  void* const copy = dlopen(SECOND_COPY, RTLD_NOW | RTLD_LOCAL);
  REQUIRE_MESSAGE(copy != nullptr, dlerror());
  void* const symbol = dlsym(copy, "second_copy_answer");
  REQUIRE(symbol != nullptr);
  const auto answer_of_copy = reinterpret_cast<int (*)(int)>(symbol);
  std::vector<std::shared_ptr<fuse::Library>> kept;
  for (int i = 0; i < 4; ++i) {
    kept.push_back(fuse::build_library(answer_source(100 + i)));
    CHECK(answer_of_copy(200 + i) == 200 + i);
  }
  for (int i = 0; i < 4; ++i) {
    CHECK(reinterpret_cast<int (*)()>(kept[i]->symbol("answer"))() == 100 + i);
  }
}
